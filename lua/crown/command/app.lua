--- Runs an app: a Lua script that declares elections.
-- @internal crown.command.app

local core = require "crown.core"

local app = {
  summary = "run an app, a Lua script that declares elections",
  usage = "crown-lua [OPTIONS] APP.lua [ARG...]",
  help = [[
APP.lua is a Lua script. It declares elections with crown.elect, and the program goes on until
the last of them ends. ARGs are in the table `arg` and in `...`. Modules are looked for beside
the app too.

  SIGTERM, SIGINT   end in order: children stopped, `lost` called, leases released
  SIGINT again      half a second later or more: end at once
  SIGHUP            where it was started from a terminal, which is gone then: as SIGTERM, unless
                    under nohup(1) or with --keep; else nothing
  exit code         0 done, 1 failed, 2 the app does not validate]],
}

--- Adds the folder of a script to where modules are looked for.
-- @string path of the script
function app.look_beside(path)
  local folder = path:match "^(.*)/[^/]*$" or "."
  package.path = package.path .. (";%s/?.lua;%s/?/init.lua"):format(folder, folder)
end

--- Runs the script that stands at a position of the command line.
-- @number at the position
function app.run(at)
  return (function(script, ...)
    app.look_beside(arg[0])
    script(...)
  end)(core.load_script(at))
end

return app
