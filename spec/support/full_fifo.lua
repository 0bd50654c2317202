--- A FIFO without room, whose reader does not read: a log collector that hangs.

--- Makes it.
-- @string path of what is made
-- @treturn file the reader, to be closed in the end
local function full_fifo(path)
  assert(os.execute("mkfifo " .. path) == 0)
  local reader = assert(io.open(path, "r+")) -- for both, so that nobody waits here
  assert(os.execute(("dd if=/dev/zero of=%s bs=4096 oflag=nonblock 2>/dev/null"):format(path)) ~= 0) -- no room for more
  return reader
end

return full_fifo
