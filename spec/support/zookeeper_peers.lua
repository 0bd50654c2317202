--- Candidates of other systems for an election in ZooKeeper: kazoo's, and Curator's where `make curator-peer` has installed it.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local tempdir = require "support.tempdir"

local JAVA = "/usr/share/java/%s.jar"
local JARS = { "curator-recipes", "curator-framework", "curator-client", "zookeeper", "guava", "slf4j-nop" }

local function class_path()
  local paths = {}
  for i, name in ipairs(JARS) do paths[i] = JAVA:format(name) end
  return table.concat(paths, ":")
end

local peers = {
  kazoo = { program = "/usr/bin/python3", words = { "spec/support/kazoo_elector.py" }, needs = "/usr/bin/python3" },
  curator = { program = "/usr/bin/java", words = { "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", class_path(),
    "spec/support/curator/Elector.java" }, needs = JAVA:format "curator-recipes" },
}

--- Why tests with a peer are skipped.
peers.MISSING = "make curator-peer installs Curator"

--- Whether a peer can be started.
-- @string kind "kazoo" or "curator"
-- @treturn boolean
function peers.is_there(kind)
  return files.kind(peers[kind].needs) ~= nil
end

--- Starts one; it stands for the election when this returns.
-- @string kind
-- @tparam ZooKeeper server
-- @string path the election's directory
-- @string node
-- @string ticks the file that all candidates write to
-- @number session seconds
-- @treturn Candidate
function peers.start(kind, server, path, node, ticks, session)
  local peer = peers[kind]
  local words = { unpack(peer.words) }
  for _, word in ipairs { "127.0.0.1:" .. server.port, path, node, ticks, session } do words[#words + 1] = word end
  local one = Candidate.start { program = peer.program, node = node, log = tempdir() .. "/log", args = words }
  eventually(function() return one:output():find "ready" end, 30)
  return one
end

return peers
