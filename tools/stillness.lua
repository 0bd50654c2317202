-- luajit stillness.lua DIRECTORY: prints a line for each time that this machine, or the disk of the directory, stood still for
-- longer than a test can be expected to bear, and until when on CLOCK_BOOTTIME. It ends when it is killed, or when who started it
-- has ended.
local ffi = require "ffi"
ffi.cdef [[
struct stillness_time { long s; long ns; };
int clock_gettime(int clock, struct stillness_time *now); int nanosleep(const struct stillness_time *pause, void *left);
int open(const char *path, int flags, int mode); long write(int fd, const void *bytes, size_t count); int fdatasync(int fd);
int getppid(void);
]]

local LEAST = 0.3                 -- seconds
local PAUSE_NS = 20 * 1000 * 1000 -- between two looks at the clock
local LOOKS = 25                  -- at the clock, for one at the disk
local CLOCK_BOOTTIME = 7
local O_CREATE_WRITE_CLOEXEC = 64 + 1 + 524288

local time, pause = ffi.new "struct stillness_time", ffi.new("struct stillness_time", 0, PAUSE_NS)

local function now()
  ffi.C.clock_gettime(CLOCK_BOOTTIME, time)
  return tonumber(time.s) + tonumber(time.ns) / 1e9
end

io.stdout:setvbuf "no"
local last = now()
local function look(what)
  local at = now()
  if at - last > LEAST then print(("%s stood still for %.3f s, until %.3f"):format(what, at - last, at)) end
  last = at
end

local fd = ffi.C.open(arg[1] .. "/stillness", O_CREATE_WRITE_CLOEXEC, 384)
local parent = ffi.C.getppid()
while ffi.C.getppid() == parent do
  for _ = 1, LOOKS do
    ffi.C.nanosleep(pause, nil)
    look "the machine"
  end
  ffi.C.write(fd, ".", 1)
  ffi.C.fdatasync(fd)
  look "the disk"
end
