--- Takes the pictures of the status page that the docs show, of three hosts that are made up: `make status-pictures`.
--   crown-lua tools/status-pictures.lua FOLDER
package.path = "spec/?.lua;" .. package.path
local Browser = require "support.browser"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local http = require "support.http"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local FOLDER = arg[1] or "docs/figures"
local WIDE, NARROW = { 1280, 720 }, { 375, 812 }
local PICTURES = {
  { "status-wide-light.png", "/", WIDE, "light" }, { "status-wide-dark.png", "/", WIDE, "dark" },
  { "status-narrow-light.png", "/", NARROW, "light" }, { "status-narrow-dark.png", "/", NARROW, "dark" },
  { "store-wide-light.png", "/store", WIDE, "light" },
}
-- Which host stands for which election. The first who comes leads.
local HOSTS = { { "db-2", "mail", "backup" }, { "db-3", "crawler" }, { "db-1", "reports", "invoices", "mail", "backup", "crawler" } }

local function host_of(one, oracle)
  local lines = { 'local crown = require "crown"' }
  for i = 2, #one do
    lines[i] = ("crown.elect { name = %q, child = { 'sleep', '600' } }"):format(one[i])
  end
  local path = write_file(tempdir() .. "/app.lua", table.concat(lines, "\n") .. "\n")
  local candidate = Candidate.start { node = one[1], log = tempdir() .. "/log", env = { CROWN_DIRECTORY = tempdir() },
    args = { "--log-level", "info", "--oracle", oracle, "--http", "127.0.0.1:0", path } }
  candidate.port = eventually(function() return tonumber(candidate:output():match "http.listening.- port=(%d+)") end, 30)
  return candidate
end

local function has_leader(candidate, name)
  return http.ask(candidate.port, "GET /leader/" .. name).body:find '"leader":"' ~= nil
end

local function take(browser, port, picture)
  local name, path, size, scheme = unpack(picture)
  browser:look_like(size[1], scheme, size[2])
  browser:visit(("http://127.0.0.1:%d%s"):format(port, path))
  eventually(function() return path ~= "/" or browser:run "return document.body.innerText.includes('live')" end, 20)
  local shot = browser:devtools("Page.captureScreenshot", { format = "png", captureBeyondViewport = false })
  local encoded = write_file(tempdir() .. "/picture", shot.data)
  assert(crown.exec({ "sh", "-c", 'base64 -d "$1" > "$2"', "sh", encoded, FOLDER .. "/" .. name }).code == 0)
end

assert(files.kind(FOLDER) == "directory", "there is no folder " .. FOLDER)
local redis = Redis.start()
local started = {}
for i, one in ipairs(HOSTS) do
  started[i] = host_of(one, redis.quick)
  for k = 2, #one do eventually(function() return has_leader(started[i], one[k]) end, 30) end
end
run { "pause", "--oracle", redis.quick, "--for", "2h", "--why", "the disks are replaced", "backup" }
eventually(function() return http.ask(started[#started].port, "GET /").body:find "db%-2, %S+ s ago" end, 30)
local browser = Browser.start()
for _, picture in ipairs(PICTURES) do take(browser, started[#started].port, picture) end
browser:destroy()
for _, one in ipairs(started) do one:destroy() end
redis:destroy()
