-- The laws of a store must find what they are there for: each store below breaks one of them, and has to hear of that one.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local judge = require "crown.laws.judge"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- --- a store in a table, which answers at once

local Shelf = {}
Shelf.__index = Shelf

local function new_shelf(changes)
  local store = setmetatable({ rows = {}, count = 0, listeners = {} }, Shelf)
  for key, value in pairs(changes or {}) do store[key] = value end
  return store
end

function Shelf:row(name) return self.rows[name] or { text = false, version = false } end

function Shelf:look(names)
  local found = {}
  for _, name in ipairs(names) do
    local row = self:row(name)
    found[name] = { text = row.text, version = row.version, memory = "m" }
  end
  return found
end

function Shelf:stands(write) return self:row(write.name).version == write.version and write.memory == "m" end

function Shelf:put(write)
  self.count = self.count + 1
  self.rows[write.name] = { text = write.text, version = self.count }
  for _, fn in ipairs(self.listeners) do fn(write.name) end
  return self.count
end

function Shelf:swap(writes)
  local done = {}
  for i, write in ipairs(writes) do done[i] = self:stands(write) and self:put(write) end
  return done
end

function Shelf:names()
  local names = {}
  for name in pairs(self.rows) do names[#names + 1] = name end
  return names
end

function Shelf:hear(fn) self.listeners[#self.listeners + 1] = fn end

-- @treturn table for each law that is broken, what was seen
-- @treturn table for each law that was not tried, why
local function tried_on(open, url)
  local results, problem = judge.try(open, url)
  assert(results, problem)
  local broken, untried = {}, {}
  for _, one in ipairs(results) do broken[one.law], untried[one.law] = one.broken, one.untried end
  return broken, untried, results
end

local function tried(changes)
  local store = new_shelf(changes)
  return tried_on(function() return store end)
end

local NOT_THERE = "a record that nobody has written is not there"
local TO_THE_LETTER = "a look finds what was written, to the letter"
local NEW = "a new record takes the place of no other one"
local OLDER = "a write over an older version changes nothing, and no version comes twice"
local NOWHERE = "a write over a version makes no record where there is none"
local AT_ONCE = "of several who write over one version at once, one succeeds"
local FRESH = "a look finds what stood after it was asked"
local LETTERS = "names are told apart by each letter"
local OWN_ANSWER = "each of several writes and looks has an answer of its own"
local NAMES = "each record's name is told"
local MEMORY = "a write that names another memory changes nothing"
local HEARD = "who listens is told of a change"

-- What a store does otherwise, and the law that hears of it.
local SLIPS = {
  [NOT_THERE] = { row = function() return { text = "{}", version = 1 } end },
  [TO_THE_LETTER] = { put = function(self, write)
    write.text = write.text:sub(1, 2000) -- a column that is too short
    return Shelf.put(self, write)
  end },
  [NEW] = { stands = function(self, write) return not write.version or Shelf.stands(self, write) end },
  [OLDER] = { stands = function(self, write)
    return Shelf.stands(self, write) or write.version and self.rows[write.name] and write.memory == "m"
  end },
  [NOWHERE] = { stands = function(self, write) return Shelf.stands(self, write) or write.version and not self.rows[write.name] end },
  [AT_ONCE] = { swap = function(self, writes) -- compares here, and writes later
    local may = {}
    for i, write in ipairs(writes) do may[i] = self:stands(write) end
    crown.sleep(0.002)
    for i, write in ipairs(writes) do may[i] = may[i] and self:put(write) end
    return may
  end },
  [FRESH] = { look = function(self, names) -- keeps an answer for a moment
    if #names > 1 or not self.rows[names[1]] then return Shelf.look(self, names) end
    self.kept = self.kept or {}
    local kept = self.kept[names[1]]
    if kept and kept.count == 1 then
      kept.count = 2
      return kept.found
    end
    local found = Shelf.look(self, names)
    self.kept[names[1]] = { found = found, count = (kept or { count = 0 }).count + 1 }
    return found
  end },
  [LETTERS] = { row = function(self, name) return Shelf.row(self, name:lower()) end, put = function(self, write)
    local one = { name = write.name:lower(), text = write.text }
    return Shelf.put(self, one)
  end },
  [OWN_ANSWER] = { swap = function(self, writes)
    local done = Shelf.swap(self, writes)
    for i in ipairs(done) do done[i] = done[1] end
    return done
  end },
  [NAMES] = { names = function() return {} end },
  [MEMORY] = { stands = function(self, write) return self:row(write.name).version == write.version end },
}

describe("the laws of a store", function()
  it("are kept by one that keeps them", function()
    local broken, untried, results = tried()
    assert.same({}, broken)
    assert.is_nil(untried[HEARD])
    assert.matches("does not name one host", untried["a write without an answer is not known"])
    assert.is_true(results.left > 20)
  end)

  for law, changes in pairs(SLIPS) do
    it("tell who breaks it: " .. law, function()
      local broken = tried(changes)
      assert.is_string(broken[law])
    end)
  end

  -- Tries in a task of its own, while a clock that stands still is moved on.
  local function tried_within(seconds, changes)
    local clock = require("crown.testing").fake_clock()
    finally(function() clock:restore() end)
    local results, problem
    crown.spawn(function()
      local store = new_shelf(changes)
      results, problem = judge.try(function() return store end)
    end)
    clock:advance(seconds)
    return results, problem
  end

  it("tell who hears nothing though it says that it does", function()
    for _, one in ipairs(tried_within(12, { hear = function() end })) do
      if one.law == HEARD then assert.matches("`hear` told nothing", one.broken) end
    end
  end)

  it("tell who writes what it says it has refused", function()
    local broken = tried { swap = function(self, writes)
      local done = Shelf.swap(self, writes)
      for i, write in ipairs(writes) do
        if not done[i] and write.memory == "m" then self:put(write) end
      end
      return done
    end }
    for _, law in ipairs { NEW, OLDER, NOWHERE } do assert.matches("a look finds", broken[law]) end
  end)

  it("tell an author what shape an answer has", function()
    local broken = tried { look = function(self, names)
      local found, list = Shelf.look(self, names), {}
      for i, name in ipairs(names) do list[i] = found[name] end
      return list
    end }
    assert.matches("look answered with nil for 'laws%-%x+%-%d+': a table by name is expected", broken[NOT_THERE])
    broken = tried { swap = function(self, writes) return Shelf.swap(self, writes)[1] end }
    assert.matches("swap returned %d+: an array is expected", broken[NEW])
    broken = tried { look = function() error "upside down" end }
    assert.matches("an error: .*upside down", broken[NOT_THERE])
  end)

  it("say that a store does not answer", function()
    local results, problem = tried_within(11, { look = function() return nil, "gone", "store" end })
    assert.is_nil(results)
    assert.equal("gone", problem)
  end)

  it("count what is left where a store keeps a mark of what was deleted", function()
    local store = new_shelf { deletes = true }
    local _, _, results = tried_on(function() return store end)
    assert.is_true(results.left > 20)
  end)

  it("leave nothing behind where records can be deleted", function()
    local store = new_shelf { deletes = true, put = function(self, write)
      if write.text then return Shelf.put(self, write) end
      self.rows[write.name] = nil
      return ""
    end }
    local _, _, results = tried_on(function() return store end)
    assert.equal(0, results.left)
    assert.same({}, store.rows)
  end)
end)

-- --- a store over TCP: `look NAME` and `swap NAME VERSION TEXT`

local function start_server()
  local shelf = new_shelf()
  local function answer(line)
    local name = line:match "^look (%S+)$"
    if name then
      local row = shelf:row(name)
      return row.text and ("%d %s"):format(row.version, row.text) or "none"
    end
    local target, version, text = line:match "^swap (%S+) (%S+) (.*)$"
    local done = shelf:swap { { name = target, version = tonumber(version) or false, text = text, memory = "m" } }
    return done[1] and tostring(done[1]) or "changed"
  end
  return assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
    for line in function() return connection:read("*l", 60) end do
      if not connection:write(answer(line) .. "\n") then break end
    end
    connection:close()
  end))
end

-- A store that keeps its connection until a question has failed. Its calls overlap, and its questions may not.
local Wire = {}
Wire.__index = Wire

function Wire:in_turn(question)
  while self.is_busy do crown.sleep(0.001) end
  self.is_busy = true
  local line, problem = self:ask(question)
  self.is_busy = false
  return line, problem
end

function Wire:ask(question)
  if not self.connection then self.connection = crown.tcp.connect("127.0.0.1", self.port, { timeout = self.timeout }) end
  if not self.connection then return nil, "no connection" end
  local sent, problem = self.connection:write(question .. "\n")
  local line
  if sent then line, problem = self.connection:read "*l" end
  if not line then self:failed(problem) end
  return line, problem
end

function Wire:failed()
  self.connection:close()
  self.connection = nil
end

function Wire:look(names)
  local found = {}
  for _, name in ipairs(names) do
    local line, problem = self:in_turn("look " .. name)
    if not line then return nil, problem end
    local version, text = line:match "^(%d+) (.*)$"
    found[name] = { text = text or false, version = tonumber(version) or false, memory = "" }
  end
  return found
end

function Wire:swap(writes)
  local done, problem = {}, nil
  for i, write in ipairs(writes) do
    local line
    line, problem = self:in_turn(("swap %s %s %s"):format(write.name, tostring(write.version), write.text))
    if line then done[i] = tonumber(line) or false end
  end
  if next(done) == nil then return nil, problem end
  return done
end

local function tried_over_tcp(changes)
  local server = start_server()
  local function open(url, timeout)
    local store = setmetatable({ port = tonumber((url or ""):match ":(%d+)" or server:port()), timeout = timeout }, Wire)
    for key, value in pairs(changes or {}) do store[key] = value end
    return store
  end
  local broken, untried = tried_on(open, ("wire://me@127.0.0.1:%d/x"):format(server:port()))
  server:close()
  return broken, untried
end

-- A client that says a question again when it has failed.
local function ask_twice(self, question)
  local line, problem = Wire.ask(self, question)
  if line then return line end
  return Wire.ask(self, question), problem
end

describe("the laws of a store whose answers do not come", function()
  local SILENT_LOOK, SILENT_WRITE = "a look without an answer is not known, and ends in time", "a write without an answer is not known"
  local CUT, LATE = "a write whose connection ended before the answer is not known",
    "a late answer is taken for that of no later question"

  local SLIPS_OF_ANSWERS = {
    ["keeps them"] = { {} },
    ["takes silence for an empty store, and for a refusal"] = { { [SILENT_LOOK] = true, [SILENT_WRITE] = true, [CUT] = true },
      { ask = function(self, question) return Wire.ask(self, question) or "none" end } },
    ["writes again by itself"] = { { [CUT] = true }, { ask = ask_twice } },
    ["keeps a connection on which an answer is still to come"] = { { [SILENT_WRITE] = true, [CUT] = true, [LATE] = true },
      { failed = function(self, problem)
        if problem ~= "timeout" then Wire.failed(self) end
      end } },
    ["waits for longer than it may"] = { { [SILENT_LOOK] = true, [SILENT_WRITE] = true, [LATE] = true },
      { timeout = 4.5 } },
  }

  it("are kept, and each slip breaks its own", function()
    local left = 0
    for title, case in pairs(SLIPS_OF_ANSWERS) do
      left = left + 1
      crown.spawn(function()
        local broken, untried = tried_over_tcp(case[2])
        case.seen = {}
        for law in pairs(broken) do case.seen[law] = true end
        assert(title and not untried[LATE], untried[LATE])
        left = left - 1
      end)
    end
    eventually(function() return left == 0 end, 60)
    for title, case in pairs(SLIPS_OF_ANSWERS) do -- where the machine stands still, a slip may break others too
      for law in pairs(case[1]) do assert(case.seen[law], title .. ": " .. law) end
    end
    assert.same({}, SLIPS_OF_ANSWERS["keeps them"].seen)
  end)
end)

describe("crown-lua check --laws", function()
  local dir

  before_each(function() dir = tempdir() end)

  local function check(module, ...)
    write_file(dir .. "/mine.lua", module)
    return run({ "check", "--laws", ... }, { env = { LUA_PATH = dir .. "/?.lua;;", CROWN_DIRECTORY = dir }, timeout = 60 })
  end

  local TABLE = [[
    local rows, count = {}, 0
    return require("crown.oracle.cas").oracle {
      word = "mine",
      read = function(self)
        local row = rows[self.name]
        if not row then return false end
        return row[1], row[2]
      end,
      write = function(self, text, version)
        if (rows[self.name] or {})[2] ~= version then return false end
        count = count + 1
        rows[self.name] = { text, count }
        return count
      end,
    }
  ]]

  it("says in words what is kept and what is not, and ends with 0 or 2", function()
    local kept = check(TABLE, "--oracle", "mine:x")
    assert.equal(0, kept.code, kept.stderr)
    assert.matches("  kept       " .. NEW, kept.stdout, 1, true)
    assert.matches("left behind: %d+ small records whose names have %x+ in them", kept.stdout)
    assert.matches("\nlaws: 16 laws, none broken, 7 not tried\n$", kept.stdout)
    local broken = check(TABLE:gsub("%(rows%[self.name%] or {}%)%[2%] ~= version", "false"), "--oracle", "mine:x")
    assert.equal(2, broken.code, broken.stderr)
    assert.matches("  BROKEN     " .. NEW .. "\n +a second write of a new record", broken.stdout)
    assert.matches("laws: %d of 16 laws are broken: two could lead", broken.stdout)
  end)

  it("says the same to programs", function()
    local told = check(TABLE, "--json", "--oracle", "mine:x")
    local list = crown.json.decode(told.stdout)
    assert.equal(16, #list)
    assert.equal("a record that nobody has written is not there", list[1].law)
    assert.is_nil(list[1].broken)
    assert.is_string(list[10].untried)
    local silent = check(TABLE:gsub("row%[1%], row%[2%]", "nil, 'gone'"), "--json", "--oracle", "mine:x")
    assert.equal(3, silent.code)
    assert.same({ { error = "gone" } }, crown.json.decode(silent.stdout))
    assert.matches("left behind: %d+ small records", silent.stderr)
  end)

  it("is for stores with two verbs, and for no app", function()
    for wanted, words in pairs {
      ["%-%-laws is for stores on crown.oracle.cas, and for drivers: 'file' is another oracle"] = { "--oracle", "file:" .. tempdir() },
      ["%-%-laws takes no app"] = { "--oracle", "mine:x", "app.lua" },
    } do
      local refused = check(TABLE, unpack(words))
      assert.equal(2, refused.code)
      assert.matches(wanted, refused.stderr)
    end
  end)

  it("ends with 3 where the store gives no answer", function()
    local away = check(TABLE:gsub("local row = rows%[self.name%]", "do return nil, 'it is away' end\n%0"), "--oracle", "mine:x")
    assert.equal(3, away.code)
    assert.matches("check: it is away", away.stderr)
  end)
end)
