--- The names of nodes in an election's directory, as Curator's LeaderLatch and kazoo's Election have them: a text of 32 digits
-- that is a candidate's own, the recipe's mark, and ten digits that the server counts. The lowest leads.
-- @internal crown.zookeeper.recipe

local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"
local printable = require "crown.text.printable"
local wire = require "crown.zookeeper.wire"

local recipe = {}

local VERSION_AT = 13 -- the digit that says how an UUID was made: Curator's and kazoo's are random ones, with a 4 there
local OURS = "8" -- an UUID of one's own making
local OWN = 16 -- digits that are the same for all nodes of a candidate

local function uuid(guid)
  return ("%s-%s-%s-%s-%s"):format(guid:sub(1, 8), guid:sub(9, 12), guid:sub(13, 16), guid:sub(17, 20), guid:sub(21))
end

-- Curator takes each child for a candidate; kazoo passes by what it does not know. kazoo makes its directory once: it must not
-- be a container, which the server removes when it is empty.
local KINDS = {
  curator = { front = function(guid) return ("_c_%s-latch-"):format(uuid(guid)) end, pattern = "^_c_([%x-]+)%-latch%-(%d+)$",
    counts_all = true, directory = { "container", wire.CONTAINER }, name = "curator", by = "Curator's LeaderLatch" },
  kazoo = { front = function(guid) return guid .. "__lock__" end, pattern = "^(%x+)__lock__(%d+)$",
    directory = { "create", wire.PERSISTENT }, name = "kazoo", by = "kazoo's Election" },
}

local OTHER = "the directory %s has the node '%s', which no candidate by recipe=%s makes: name another election, or the recipe "
  .. "of those who are there"

--- A recipe.
-- @string name "curator" or "kazoo"
-- @treturn table
function recipe.of(name)
  return KINDS[name]
end

--- What all nodes of a candidate begin with.
-- @string secret what is the same from one runtime of the candidate to the next
-- @treturn string 16 digits
function recipe.owner(secret)
  local digits = hex(crypto.hmac_sha256("zookeeper candidate", secret):sub(1, OWN / 2))
  return digits:sub(1, VERSION_AT - 1) .. OURS .. digits:sub(VERSION_AT + 1)
end

--- A new node's text, which no other one has.
-- @string owner
-- @treturn string 32 digits
function recipe.guid(owner)
  return owner .. hex(crypto.random(8))
end

--- Whether a candidate of ours made a node.
-- @tparam table one as recipe.queue has it
-- @treturn boolean
function recipe.is_ours(one)
  return one.guid:sub(VERSION_AT, VERSION_AT) == OURS
end

-- Ten digits, which all clients compare as a number.
local function read(kind, name)
  local guid, count = name:match(kind.pattern)
  guid = guid and guid:gsub("-", "")
  return guid and #guid == 32 and #count == 10 and { name = name, guid = guid, count = tonumber(count) } or nil
end

--- The candidates in a directory.
-- @tparam table kind
-- @string base the directory
-- @tparam table names of its children
-- @treturn table an array of `{ name =, guid =, count = }`, the leader first; or nil and a message where a child is another
-- recipe's: some would count it, and others would not
function recipe.queue(kind, base, names)
  local found = {}
  for _, name in ipairs(names) do
    local one = read(kind, name)
    if not one and (kind.counts_all or name:find "%d%d%d%d%d%d%d%d%d%d$") then
      return nil, OTHER:format(base, printable(name), kind.name)
    end
    found[#found + 1] = one
  end
  table.sort(found, function(a, b) return a.count < b.count end)
  return found
end

local function escape(character) return ("%%%02X"):format(character:byte()) end

--- An election's directory below a path. What its name has of "/" and the like is escaped.
-- @string path "" for none
-- @string name
-- @treturn string
function recipe.base(path, name)
  name = name:gsub("[%c/%%]", escape):gsub("^@", escape):gsub("^%.+$", function(dots) return (dots:gsub(".", escape)) end)
  return path .. "/" .. name
end

--- What a node's data says: a candidate's name, and perhaps the wish that it go.
-- @string data
-- @treturn string
-- @treturn boolean
function recipe.read_data(data)
  return data:match "^[^\n]*", data:find("\nevict", 1, true) ~= nil
end

--- Data with the wish that its candidate go.
-- @string data
-- @treturn string
function recipe.with_wish(data)
  return recipe.read_data(data) .. "\nevict"
end

return recipe
