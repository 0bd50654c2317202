--- Temporary directories. tools/run-spec.sh removes them when the file's specs have ended, however they did.
local parent = os.getenv "CROWN_SPEC_TEMP" or "/tmp"

local function tempdir()
  local pipe = assert(io.popen(("mktemp -d '%s/crown-spec-XXXXXX'"):format(parent)))
  local path = pipe:read "*l"
  pipe:close()
  return path
end

return tempdir
