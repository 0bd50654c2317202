--- A copy of the tree that mutants are applied to. It is kept, so that only what changed is built again.
local ffi = require "ffi"
local list = require "mutants.list"

ffi.cdef [[
struct mutants_time { long s, ns; };
int clock_gettime(int clock, struct mutants_time *);
int open(const char *path, int flags, int mode);
int flock(int fd, int operation);
]]

local tree = {} -- DIR: where the copy is, once one is taken

local O_RDWR_CREATE_CLOEXEC, LOCK_EX_NB = 2 + 64 + 524288, 2 + 4

--- How a copy is built.
tree.FLAGS = "CFLAGS='-O1 -g -w'"

local BUILD = "make -s --no-print-directory -j2 "
local time = ffi.new "struct mutants_time"

--- Seconds on a clock that only rises.
function tree.now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.s) + tonumber(time.ns) / 1e9
end

local function quoted(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- A file of the copy.
function tree.read(path)
  return list.read(tree.DIR .. "/" .. path)
end

--- Runs a shell command in the copy, whose tests wait `patience` times as long as they need (1).
-- @return the exit code, its output, the seconds it took
function tree.run(command, seconds, patience)
  local started = tree.now()
  local status = os.execute(("cd %s && CROWN_TEST_PATIENCE=%d timeout -k 2 %d sh -c %s >build/log 2>&1 </dev/null")
    :format(tree.DIR, patience or 1, seconds, quoted(command)))
  return status / 256, tree.read "build/log" or "", tree.now() - started
end

function tree.write(path, text)
  local file = assert(io.open(tree.DIR .. "/" .. path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

local function lines_of(command)
  local pipe, found = io.popen(command), {}
  for line in pipe:lines() do found[#found + 1] = line end
  pipe:close()
  return found
end

--- Takes a copy that no other process uses, for as long as this one lives.
-- @string[opt] home the directory of the copies
function tree.take(home)
  home = home or "build-mutants"
  for number = 1, 100 do
    local fd = ffi.C.open(("%s/tree%d.lock"):format(home, number), O_RDWR_CREATE_CLOEXEC, 420)
    if fd >= 0 and ffi.C.flock(fd, LOCK_EX_NB) == 0 then
      tree.DIR = ("%s/tree%d"):format(home, number)
      return
    end
  end
  error "no copy of the tree is to be had"
end

--- Makes the copy the same as the working tree, touching only files that differ. @return a digest of what tests
-- depend on
-- @tparam[opt] boolean as_built a new copy takes over what is built here, so that only what changes is built in it
function tree.sync(as_built)
  local new = as_built and not list.read(tree.DIR .. "/Makefile")
  os.execute("mkdir -p " .. tree.DIR .. "/build")
  local wanted = {}
  for _, path in ipairs(lines_of "git ls-files -co --exclude-standard") do
    local text = list.read(path)
    if text then
      wanted[path] = true
      if list.read(tree.DIR .. "/" .. path) ~= text then
        os.execute(("mkdir -p %s && cp -p %s %s && %s %s"):format(quoted(tree.DIR .. "/" .. (path:match "^(.*)/" or "")),
          quoted(path), quoted(tree.DIR .. "/" .. path), new and ":" or "touch", quoted(tree.DIR .. "/" .. path)))
      end
    end
  end
  if new then os.execute("cp -a build crown-lua " .. tree.DIR) end
  for _, path in ipairs(lines_of("cd " .. tree.DIR .. " && find . -type f -not -path './build/*' -not -name crown-lua")) do
    if not wanted[path:sub(3)] then os.remove(tree.DIR .. "/" .. path) end
  end
  return lines_of("cd " .. tree.DIR .. " && find runtime lua spec mk Makefile -type f -not -path spec/mutants"
    .. " -print0 | sort -z | xargs -0 sha1sum | sha1sum")[1]
end

--- Builds what a test needs. @return true, or nil and the compiler's words
function tree.build(targets)
  if #targets == 0 then return true end
  local code, output = tree.run(("%s %s %s"):format(BUILD, tree.FLAGS, table.concat(targets, " ")), 300)
  return code == 0 or nil, output
end

return tree
