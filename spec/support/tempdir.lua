--- Temporary directories, removed when the run ends.
local made = {}

local function remove_all()
  for _, path in ipairs(made) do os.execute("rm -rf '" .. path .. "'") end
end

-- Collected at the end, also after a failure.
local sentinel = newproxy(true)
getmetatable(sentinel).__gc = remove_all

local function tempdir()
  local pipe = assert(io.popen("mktemp -d /tmp/crown-spec-XXXXXX"))
  local path = pipe:read "*l"
  pipe:close()
  made[#made + 1] = path
  assert(sentinel)
  return path
end

return tempdir
