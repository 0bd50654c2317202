--- What the laws of a store are tried with: two stores at one place, as two runtimes have them, and records that nobody else has.
-- A law that finds a breach ends by `broken`.
-- @internal crown.laws.bench

local core = require "crown.core"
local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"
local new_nonce = require "crown.text.nonce"
local record = require "crown.register.record"

local Bench = {}
Bench.__index = Bench

local PATIENCE = 10 -- seconds, for an answer of a store that works
local PAUSE = 0.02
local TTL = 15

--- Makes one.
-- @tparam function open `open(url or nil, timeout)` → a store of its own; or nil and a message
-- @string[opt] url that leads to the store
-- @treturn Bench or nil and a message
function Bench.new(open, url)
  local self = setmetatable({ open = open, url = url, tag = hex(crypto.random(6)), count = 0, written = {} }, Bench)
  local problem
  self.one, problem = open(nil, PATIENCE / 2)
  if not self.one then return nil, problem end
  self.two, problem = open(nil, PATIENCE / 2)
  if not self.two then return nil, problem end
  return self
end

--- Ends a law: the store has broken it.
-- @string format what was seen, as string.format takes it
function Bench.broken(format, ...)
  error({ broken = format:format(...) }, 0)
end

--- Ends a law: it cannot be tried here.
-- @string why
function Bench.untried(why)
  error({ untried = why }, 0)
end

--- Ends everything: the store gives no answer.
-- @string[opt] problem
function Bench.silent(problem)
  error({ silent = problem or "timeout" }, 0)
end

--- How a version, or a text, is shown.
-- @param value
-- @treturn string
function Bench.show(value)
  if type(value) ~= "string" then return tostring(value) end
  return #value > 60 and ("%q…"):format(value:sub(1, 60)) or ("%q"):format(value)
end

--- A name that no record has yet.
-- @string[opt] like what it ends with
-- @treturn string
function Bench:name(like)
  self.count = self.count + 1
  return ("laws-%s-%d%s"):format(self.tag, self.count, like or "")
end

--- The name of a session that nobody has.
-- @treturn string
function Bench:session()
  self.count = self.count + 1
  local name = record.session_name(("%s%020d"):format(self.tag, self.count), TTL)
  return self.one.part_of and name .. "@" .. self.one.part_of "laws" or name
end

--- A record's text that never came before.
-- @string name under which it will stand
-- @string[opt] node
-- @treturn string
function Bench:text(name, node)
  self.count = self.count + 1
  local one = { v = record.VERSION, serial = self.count, memory = self.memory or "", node = node }
  if record.is_reserved(name) then one.ttl, one.at, one.node = TTL, self.count, node or "laws"
  else one.epoch = self.count end
  return record.text(one, new_nonce())
end

-- Asks until there is an answer.
local function until_answered(ask)
  local until_then = core.now() + PATIENCE
  repeat
    local answer, problem = ask()
    if answer ~= nil then return answer end
    if tostring(problem):find("see the oracle contract", 1, true) then Bench.broken("%s", problem) end
    if core.now() >= until_then then Bench.silent(problem) end
    core.sleep(PAUSE)
  until false
end

local function checked(name, answer)
  if type(answer) ~= "table" then
    Bench.broken("look answered with %s for '%s': a table by name is expected, { [name] = { text =, version =, memory = } }",
      Bench.show(answer), name)
  end
  if answer.text ~= false and type(answer.text) ~= "string" then
    Bench.broken("look answered with text = %s for '%s': the record's text is expected, or false where there is none",
      Bench.show(answer.text), name)
  end
  return answer
end

--- Looks at one record.
-- @tparam table store
-- @string name
-- @treturn table the answer
function Bench.look(store, name)
  return checked(name, until_answered(function() return store:look { name } end)[name])
end

--- Looks at several.
-- @tparam table store
-- @tparam table names
-- @treturn table for each name its answer
function Bench.look_all(store, names)
  local answers = until_answered(function() return store:look(names) end)
  for _, name in ipairs(names) do checked(name, answers[name]) end
  return answers
end

--- One write.
-- @string name
-- @param version over which it goes, false for a new record
-- @string text
-- @treturn table
function Bench:one_write(name, version, text)
  self.written[name] = true
  return { name = name, version = version, text = text, memory = self.memory or "" }
end

--- Writes one record.
-- @tparam table store
-- @string name
-- @param version over which it goes, false for a new record
-- @string[opt] text
-- @treturn string or number the new version; false where another one stands; nil and a message where nobody knows
-- @treturn string the text
function Bench:write(store, name, version, text)
  text = text or self:text(name)
  local answers, problem = store:swap { self:one_write(name, version, text) }
  if answers ~= nil and type(answers) ~= "table" then
    Bench.broken("swap returned %s: an array is expected, with the answer to each write", Bench.show(answers))
  end
  if answers and answers[1] ~= nil then return answers[1], text end
  return nil, answers and "swap gave no answer to its one write" or problem
end

--- Writes one record, which has to succeed.
-- @tparam table store
-- @string name
-- @param version
-- @string[opt] text
-- @treturn string or number the new version
-- @treturn string the text
function Bench:must_write(store, name, version, text)
  local new, said = self:write(store, name, version, text)
  if new == nil then
    if tostring(said):find("see the oracle contract", 1, true) then Bench.broken("%s", said) end
    Bench.silent(said)
  end
  if not new then
    if not version then Bench.broken("a new record '%s' was refused, although there is none of that name", name) end
    Bench.broken("a write over version %s was refused, although that version stands", Bench.show(version))
  end
  return new, said
end

-- Where the store can, that is; some keep what tells that a record was deleted.
-- @return whether nothing is left; raises an error where the store gives no answer
local function delete(store, name)
  local answer = Bench.look(store, name)
  if answer.version and store.deletes then
    store:swap { { name = name, version = answer.version, memory = answer.memory, text = false } }
    answer = Bench.look(store, name)
  end
  return not answer.version and not answer.text
end

--- Deletes what was written, where the store can.
-- @treturn number how many records are left behind, as far as is known
function Bench:clear()
  local left, answers = 0, true
  for name in pairs(self.written) do
    local gone
    if answers then answers, gone = pcall(delete, self.one, name) end
    if not (answers and gone) then left = left + 1 end
  end
  for _, store in ipairs { self.one, self.two } do
    if store.close then store:close() end
  end
  return left
end

return Bench
