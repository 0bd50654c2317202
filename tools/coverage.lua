--- What no test has executed: luajit tools/coverage.lua BUILD-DIRECTORY, after `make coverage` has run the tests.
local util = require "jit.util"

local directory = arg[1]
local files, order = {}, {} -- by path: lines → whether executed

local function lines_of(path)
  if not files[path] then
    files[path] = {}
    order[#order + 1] = path
  end
  return files[path]
end

local function read_c()
  local pipe = io.popen("find " .. directory .. "/runtime -name '*.gcda' | sort")
  for counts in pipe:lines() do
    local current
    local gcov = io.popen("gcov --stdout '" .. counts .. "' 2>/dev/null")
    for line in gcov:lines() do
      local count, number, text = line:match "^%s*([^:]+):%s*(%d+):(.*)$"
      if number == "0" then
        local source = text:match "^Source:(.*)$"
        if source then current = source:match "^runtime/.*%.c$" and lines_of(source) end
      elseif current and number and count ~= "-" then
        current[tonumber(number)] = current[tonumber(number)] or not count:find "^[#=]"
      end
    end
    gcov:close()
  end
  pipe:close()
end

-- Every line that has an instruction of its own.
local function mark(fn, lines)
  local info = util.funcinfo(fn)
  for at = 1, info.bytecodes - 1 do
    local line = util.funcinfo(fn, at).currentline
    if line and line > 0 and lines[line] == nil then lines[line] = false end
  end
  for i = -1, -(info.gcconsts or 0), -1 do
    local inner = util.funck(fn, i)
    if type(inner) == "proto" then mark(inner, lines) end
  end
end

local function read_lua()
  local pipe = io.popen "find lua/crown lua/stores lua/oracles -name '*.lua' | sort"
  for path in pipe:lines() do mark(assert(loadfile(path)), lines_of(path)) end
  pipe:close()
  pipe = io.popen("cat " .. directory .. "/lines/* 2>/dev/null | sort -u")
  for line in pipe:lines() do
    local path, number = line:match "^(.*):(%d+)$"
    local lines = path and (files["lua/" .. path] or files[path])
    if lines and lines[tonumber(number)] ~= nil then lines[tonumber(number)] = true end
  end
  pipe:close()
end

local function ranges(lines)
  local numbers, text, from, last = {}, {}, nil, nil
  for number in pairs(lines) do numbers[#numbers + 1] = number end
  table.sort(numbers)
  local function close()
    if from then text[#text + 1] = from == last and tostring(from) or from .. "-" .. last end
    from = nil
  end
  for _, number in ipairs(numbers) do
    if lines[number] then
      close()
    else
      from, last = from or number, number
    end
  end
  close()
  return table.concat(text, " ")
end

local function count(lines)
  local all, executed = 0, 0
  for _, hit in pairs(lines) do all, executed = all + 1, executed + (hit and 1 or 0) end
  return all, executed
end

read_c()
read_lua()
table.sort(order)
local folders, names = {}, {}
for _, path in ipairs(order) do
  local all, executed = count(files[path])
  local folder = path:match "^(.*)/"
  if not folders[folder] then
    folders[folder] = { 0, 0 }
    names[#names + 1] = folder
  end
  folders[folder][1], folders[folder][2] = folders[folder][1] + all, folders[folder][2] + executed
  if executed < all then print(("%-44s not executed: %s"):format(path, ranges(files[path]))) end
end
print ""
for _, folder in ipairs(names) do
  local all, executed = folders[folder][1], folders[folder][2]
  print(("%-28s %5d of %5d lines executed  %5.1f %%"):format(folder, executed, all, 100 * executed / math.max(1, all)))
end
