--- A pseudo-terminal with a program on it, typed at and read as a person does.
local Candidate = require "support.candidate"
local eventually = require "crown.testing.eventually"
local ffi = require "ffi"

ffi.cdef [[
int posix_openpt(int flags); int grantpt(int fd); int unlockpt(int fd); char *ptsname(int fd);
long read(int fd, void *buffer, size_t size); long write(int fd, const void *buffer, size_t size); int close(int fd);
struct window_size { unsigned short rows, columns, width, height; };
]]

local Terminal = {}
Terminal.__index = Terminal

local O_RDWR, O_NOCTTY, O_NONBLOCK, O_CLOEXEC = 2, 256, 2048, 524288
local TIOCSWINSZ = 0x5414

--- Starts a program on a terminal of its own.
-- @tparam table options of support.candidate; `columns` of the terminal (80)
function Terminal.start(options)
  local self = setmetatable({ text = "" }, Terminal)
  self.master = ffi.C.posix_openpt(O_RDWR + O_NOCTTY + O_NONBLOCK + O_CLOEXEC)
  assert(self.master >= 0 and ffi.C.grantpt(self.master) == 0 and ffi.C.unlockpt(self.master) == 0)
  local size = ffi.new("struct window_size", { 24, options.columns or 80, 0, 0 })
  ffi.C.ioctl(self.master, TIOCSWINSZ, size)
  options.terminal = ffi.string(ffi.C.ptsname(self.master))
  options.node = options.node or "terminal"
  options.env = options.env or {}
  options.env.TERM = options.env.TERM or "dumb" -- or a shell says more than its prompt
  self.process = Candidate.start(options)
  return self
end

--- Types text.
function Terminal:type(text)
  assert(ffi.C.write(self.master, text, #text) == #text)
end

--- All that was shown so far.
function Terminal:shown()
  local buffer = ffi.new "char[4096]"
  while true do
    local got = tonumber(ffi.C.read(self.master, buffer, 4096))
    if got <= 0 then return self.text end
    self.text = self.text .. ffi.string(buffer, got)
  end
end

--- Waits until something is shown.
function Terminal:shows(pattern, seconds)
  eventually(function() return self:shown():find(pattern) end, seconds or 10)
end

--- Waits for the exit.
function Terminal:wait(seconds)
  return self.process:wait(seconds)
end

--- Closes it, as one closes a window, or as a connection breaks.
function Terminal:close()
  if self.master then ffi.C.close(self.master) end
  self.master = nil
end

function Terminal:destroy()
  self.process:destroy()
  self:close()
end

return Terminal
