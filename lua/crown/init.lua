--- crown: elections, and what their oracles and handlers need. Everything that has to wait suspends the task that
-- calls it, never the loop; it takes a timeout in seconds and returns nil, message, code when it fails.
-- @module crown

local core = require "crown.core"

local crown = {
  elect = require "crown.elect",
  on = require("crown.election.events").on,
  sleep = core.sleep,
  spawn = core.spawn,
  now = core.now,
  json = { encode = require("crown.text.json").encode, decode = core.json.decode, null = core.json.null },

  postgres = require "crown.postgres",
  http = require "crown.http",
  redis = require "crown.redis",
  tcp = require "crown.core.tcp",
  exec = require "crown.core.exec",
  watch_file = require "crown.core.watch_file",
  node = core.node(),
  token = core.token,
  version = core.version,
  IGNORE = require("crown.election.contract").IGNORE,
  log = {},
}

for _, level in ipairs { "debug", "info", "warn", "error" } do
  -- Writes to the log: `crown.log.info(text [, fields])`, and so debug, warn, error.
  crown.log[level] = function(text, fields) core.log(level, tostring(text), fields) end
end

return crown
