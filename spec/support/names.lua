--- A host of its own for a program that looks up names: network, resolv.conf and name server are the spec's. Needs root.
local crown = require "crown"
local tempdir = require "support.tempdir"

local Names = {}

local program = os.getenv "CROWN_LUA" or "./crown-lua"

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

-- The shell is the first process of the namespaces, and waits for the program.
local START = [[
ip link set lo up
mount --bind %s /etc/resolv.conf
%s
exec %s %s
]]

--- Runs a script there to its end.
-- @string script Lua
-- @tparam table options `server`: words for spec/support/name_server.lua without its port, nil for none; `resolv`: of
-- resolv.conf, `nameserver 127.0.0.1` unless given; `sh`: shell that runs beside it, with `$resolv` and `$server HOW…`; `env`
-- @treturn table as crown.exec
function Names.run(script, options)
  local dir = tempdir()
  write(dir .. "/app.lua", script)
  write(dir .. "/resolv.conf", options.resolv or "nameserver 127.0.0.1\n")
  local server = ("luajit %s/spec/support/name_server.lua 53"):format(crown.exec({ "pwd" }).stdout:gsub("\n", ""))
  local beside = ("resolv=%s/resolv.conf; server='%s'\n"):format(dir, server)
  if options.server then
    beside = beside .. ("$server %s >%s/asked &\nuntil grep -q ready %s/asked; do sleep 0.02; done\n"):format(options.server, dir, dir)
  end
  write(dir .. "/start", START:format(dir .. "/resolv.conf", beside .. (options.sh or ""), program, dir .. "/app.lua"))
  local result = assert(crown.exec({ "/usr/bin/unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
    "/bin/sh", dir .. "/start" }, { timeout = options.timeout or 30, env = options.env }))
  local asked = io.open(dir .. "/asked")
  result.asked = asked and asked:read "*a" or ""
  if asked then asked:close() end
  return result
end

return Names
