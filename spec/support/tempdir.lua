--- Temporary directories. tools/run-spec.sh removes them when the file's specs have ended, however they did. A program that was
-- started without it, by hand, removes its own when it ends.
local parent = os.getenv "CROWN_SPEC_TEMP"

local function remove_at_end(path)
  local guard = newproxy(true)
  getmetatable(guard).__gc = function() io.popen(("rm -rf '%s'"):format(path)):close() end
  return guard
end

local guards = {}

local function tempdir()
  local pipe = assert(io.popen(("mktemp -d '%s/crown-spec-XXXXXX'"):format(parent or "/tmp")))
  local path = pipe:read "*l"
  pipe:close()
  if not parent then guards[#guards + 1] = remove_at_end(path) end
  return path
end

return tempdir
