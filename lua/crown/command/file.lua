--- Keeps a file present and fresh on the one candidate that leads.
-- @internal crown.command.file

local cli = require "crown.command.cli"
local core = require "crown.core"
local elect = require "crown.elect"
local events = require "crown.election.events"
local files = require "crown.core.files"
local full_disk = require "crown.text.full_disk"
local json = require "crown.text.json"
local output = require "crown.command.output"
local promise = require "crown.core.promise"
local read_file = require "crown.text.read_file"
local usage = require "crown.check.usage"

local file = {
  summary = "keep a file present and fresh on exactly one candidate",
  usage = "crown-lua file [OPTIONS] FILE NAME\n  crown-lua file --check FILE [--max-age SECONDS]",
  most_words = 2,
  campaigns = true,
  options = {
    { name = "check", help = "exit code 0 when FILE is there and has not expired, else 1; needs no store" },
    { name = "max-age", value = "SECONDS", number = { least = 0, most = 31536000 },
      help = "for a FILE that names no expiry", default = "60" },
  },
  help = [[
While NAME is led here, FILE holds {"timestamp", "count", "election", "node", "epoch", "expires_at"}
and is replaced, atomically, at every refresh and at least every 15 s. It is removed when leadership
is lost and at the end. A candidate that cannot write it steps down. After a crash of all of
crown-lua it is there and past its expiry.

  crown-lua file /run/cron.host CRON &
  * * * * *  root  crown-lua file --check /run/cron.host && run-the-job]],
}

local EVERY = 15    -- seconds between two writes
local NO_LEASE = 60 -- seconds that a file is good for where the oracle knows no deadline

local function is_ours(found) return found.election ~= nil and found.expires_at ~= nil end

-- `choria election file` leaves one where it was killed: whoever has moved from it finds that.
local function is_chorias(found)
  local names = 0
  for _ in pairs(found) do names = names + 1 end
  return names == 2 and found.timestamp ~= nil and type(found.count) == "number"
end

local function is_known(path)
  local found = json.object(read_file(path) or "")
  return found ~= nil and (is_ours(found) or is_chorias(found))
end

-- What lies at FILE from before is taken away, but nothing of somebody else's.
local function clear(path)
  local above = path:match "^(.*)/[^/]*$"
  if above and above ~= "" and not files.kind(above) then usage.error("file: there is no directory %s: make it first", above) end
  local kind, problem = files.kind(path)
  if problem then usage.error("file: %s", problem) end
  if kind == "directory" then usage.error("file: %s is a directory", path) end
  if kind == "other" then usage.error("file: %s is no plain file", path) end
  if kind == "file" and #read_file(path) > 0 and not is_known(path) then
    usage.error("file: %s is there and was not written by crown-lua: remove it, or name another", path)
  end
  if kind then os.remove(path) end
  local fine
  fine, problem = files.replace(path .. ".try", "")
  if not fine then usage.error("file: %s", (problem:gsub("%.try[%d.new]*", ""))) end
  os.remove(path .. ".try")
end

local Keeper = {}
Keeper.__index = Keeper

-- @raise where the file cannot be written
function Keeper:write()
  local term = self.term
  local left = term and term:remaining() or 0
  if left <= 0 then return end
  if left == math.huge then left = NO_LEASE end
  self.count = self.count + 1
  local written, problem = files.replace(self.path, json.encode {
    timestamp = os.time(), count = self.count, election = term.name, node = core.node(), epoch = term.epoch,
    expires_at = os.time() + left, expires_at_boottime = core.now() + left, boot_id = self.boot_id })
  if not written then usage.error("file: %s", full_disk.with_advice(problem)) end -- in a line, without a traceback
end

-- An error ends the term, as of every handler: another candidate may be able to write its file.
function Keeper:won(term)
  self.term = term
  while true do
    self.due = promise()
    self:write()
    self.due:wait(EVERY)
  end
end

function Keeper:refreshed()
  if self.due then self.due:resolve() end
end

function Keeper:lost()
  self.term, self.due = nil, nil
  if files.kind(self.path) == "file" then os.remove(self.path) end -- which would remove an empty directory too
end

--- The verb. (`crown-lua file --check …`, in this order, is answered before Lua is started.)
function file.run(options, words)
  local path, name = words[1], words[2]
  if options.check then
    if not path or name then usage.error "file: name a file, and no election: crown-lua file --check FILE [--max-age SECONDS]" end
    local fresh, problem = files.fresh(path, options["max-age"] or 60)
    if problem then output.say("file --check", path .. " " .. problem) end
    return fresh and 0 or 1
  end
  if options["max-age"] then usage.error "file: --max-age has no effect here: it goes with --check" end
  if path == "" then usage.error "file: FILE is an empty word (is a variable not set?)" end
  if not path or not name then usage.error("file: name a file and an election: %s", cli.usage(file)) end
  if name:find "/" then usage.error("file: '%s' is a path: FILE stands first, then the election's NAME", name) end
  clear(path)
  local keeper = setmetatable({ path = path, count = 0, boot_id = read_file "/proc/sys/kernel/random/boot_id":match "%S+" },
    Keeper)
  elect { name = name, handlers = {
    won = function(term) keeper:won(term) end,
    lost = function() keeper:lost() end,
  } }
  events.on("leadership.refreshed", function() keeper:refreshed() end)
end

return file
