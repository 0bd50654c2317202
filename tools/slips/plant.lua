--- Puts one slip into a copy of the tree, and takes it out again.
local bytecode = require "bytecode"
local slip = require "slips.slip"
local sources = require "slips.sources"
local tree = require "mutants.tree"

local plant = {}

local OVERLAY = "build/slip" -- tools/slips/overlay.c reads it

local function shell(command, ...)
  return (tree.run(command:format(...), 300)) == 0
end

--- Is it the same bytecode, but for its lines?
function plant.same_lua(before, after)
  local function code_of(text) return bytecode.in_order(string.dump(assert(loadstring(text, "=slip")), true)) end
  return code_of(before) == code_of(after)
end

local function put_lua(one, text, mutated)
  local chunk = loadstring(mutated, "@" .. one.file:gsub("^lua/", ""))
  if not chunk then return "refused" end
  if plant.same_lua(text, mutated) then return "equal" end
  assert(shell("cp -p '%s' build/slip.saved", one.file))
  tree.write(one.file, mutated)
  assert(shell("touch -r build/slip.saved '%s'", one.file)) -- or make would embed it
  -- A linter that is not there refuses nothing.
  if shell "command -v luacheck" and not shell("luacheck -q '%s'", one.file) then return "refused" end
  tree.write(OVERLAY, ("%s\n%d\n%s%s"):format(one.file:gsub("^lua/", ""), #mutated, mutated, bytecode.in_order(string.dump(chunk))))
  return "planted"
end

local function object_of(file)
  return "build/" .. file:gsub("%.c$", ".o")
end

local function put_c(one, text, mutated)
  local object = object_of(one.file)
  assert(tree.build { object })
  assert(shell("cp -p '%s' build/slip.saved && objcopy --strip-debug '%s' build/slip.before", object, object))
  tree.write(one.file, mutated)
  if not tree.build { object } then
    tree.write(one.file, text)
    -- A copy that cannot be built at all would refuse every slip, and the run would pass.
    local built, words = tree.build { object }
    return built and "refused" or error(("%s cannot be built as it is: %s"):format(one.file, words))
  end
  local same = shell("objcopy --strip-debug '%s' build/slip.after && cmp -s build/slip.before build/slip.after", object)
  return same and "equal" or "planted"
end

--- Builds what the copy needs once. The program is built before the first slip: else it would be built with it, and keep it.
function plant.prepare()
  assert(shell("gcc -std=c11 -D_GNU_SOURCE -O2 -fPIE -Iruntime -DSLIP_FILE='\"%s/%s\"' -c -o build/overlay.o tools/slips/overlay.c",
    assert(os.getenv "PWD") .. "/" .. tree.DIR, OVERLAY))
  os.remove(tree.DIR .. "/" .. OVERLAY)
  tree.FLAGS = "LDFLAGS=build/overlay.o"
  if not shell "nm crown-lua | grep -q ' overlay$'" then os.remove(tree.DIR .. "/crown-lua") end
  assert(tree.build { "crown-lua" })
end

--- Puts a slip in. Take it out in any case.
-- @treturn string `planted`; `equal`: it changes nothing; `refused`: the compiler or the linter does not let it pass
function plant.put(one)
  local text = tree.read(one.file)
  local mutated = slip.apply(one, text)
  if sources.language(one.file) == "lua" then return put_lua(one, text, mutated), text end
  return put_c(one, text, mutated), text
end

--- Takes it out.
function plant.take_out(one, text)
  if sources.language(one.file) == "c" then
    tree.write(one.file, text)
    assert(shell("cp build/slip.saved '%s'", object_of(one.file)))
  elseif tree.read(one.file) ~= text then
    os.remove(tree.DIR .. "/" .. OVERLAY)
    assert(shell("cp -p build/slip.saved '%s'", one.file))
  end
end

return plant
