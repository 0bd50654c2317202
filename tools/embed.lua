-- Writes the C source that holds the Lua modules: luajit tools/embed.lua FILE.lua… > embedded.c
-- lua/crown/init.lua is the module `crown`, lua/crown/x.lua is `crown.x`, lua/oracles/x.lua is `crown.oracles.x`,
-- lua/stores/x.lua is `crown.stores.x`.
package.path = arg[0]:gsub("[^/]*$", "?.lua;") .. package.path
local bytecode = require "bytecode"

-- Compiled when the program starts, to see whether its LuaJIT makes the same of it as the one that runs here.
local SAMPLE = [[
local a, b, c = 1, 2.5, "text"
local list, named, mixed = { 1, 2, 3 }, { x = 1 }, { a, b, [c] = true, ... }
local function outer(n, ...)
  local up = n or -n
  local function inner(v) up = up + v * 2 - v / 3 % 4 ^ 5 return up, #c, not v, c .. v .. "t" end
  if n == 1 or n ~= "s" and n < 2 and n <= b or not (n > 3) and n >= a or n == nil or n == true then return inner(n) end
  for i = 1, 10, 2 do if i > 5 then break end list[i], named.x, list[1] = i, named[c], nil end
  for k, v in pairs(named) do mixed[k] = v end
  while a < 10 do a = a + 1 end
  repeat local d = a b = d + 1 until d > 5
  mixed:method(n, ...) ; (print or error)(mixed.x, list[2], -a, 70000, 1e300, nil, true, false)
  if n then goto done end
  up = { inner(...) }
  ::done::
  return select("#", ...), outer(a, ...)
end
a, b = b, a
global = outer
return outer(...)
]]

local function module_name(path)
  local name = path:gsub("^lua/", ""):gsub("^oracles/", "crown/oracles/"):gsub("^stores/", "crown/stores/"):gsub("%.lua$", "")
  return (name:gsub("/init$", ""):gsub("/", "."))
end

-- String literals longer than 4095 bytes are beyond what C11 promises, so the bytes go out as an array.
local function bytes_of(source)
  local out, line = {}, {}
  for i = 1, #source do
    line[#line + 1] = source:byte(i)
    if #line == 24 then
      out[#out + 1] = table.concat(line, ",")
      line = {}
    end
  end
  line[#line + 1] = "0"
  out[#out + 1] = table.concat(line, ",")
  return table.concat(out, ",\n")
end

local function array(name, bytes)
  io.write(("static const unsigned char %s[] = {\n%s};\n"):format(name, bytes_of(bytes)))
end

-- Writes a module's arrays. @return what the struct of it is initialised with
local function embed(id, name, file, source)
  local code = bytecode.in_order(string.dump(assert(loadstring(source, "@" .. file))))
  array("source_" .. id, source)
  array("code_" .. id, code)
  return ('{"%s", "%s", (const char *)source_%s, %d, (const char *)code_%s, %d}'):format(name, file, id, #source, id, #code)
end

io.write('#include "lua/embedded.h"\n\n')
local rows = {}
for i, path in ipairs(arg) do
  local file = assert(io.open(path, "rb"))
  local source = file:read "*a"
  file:close()
  rows[#rows + 1] = "    " .. embed(i, module_name(path), path:gsub("^lua/", ""), source) .. ",\n"
end
io.write(("const struct embedded_module embedded_sample =\n    %s;\n"):format(embed("sample", "sample", "sample", SAMPLE)))
io.write("\nconst struct embedded_module embedded_modules[] = {\n", table.concat(rows), "    {0, 0, 0, 0, 0, 0},\n};\n")
