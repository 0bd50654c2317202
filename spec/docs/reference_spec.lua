-- Everything is on its page, and nothing else is: what the program knows is compared with what the pages that list it name, both
-- ways.
local command = require "crown.command"
local elections = require "crown.core.election"
local election_options = require "crown.election.options"
local exit_codes = require "crown.command.exit_codes"
local read_file = require "crown.text.read_file"
local store_options = require "crown.oracle.options"

local pages = {}

local function page(name)
  pages[name] = pages[name] or assert(read_file("docs/" .. name))
  return pages[name]
end

-- The part of a page below a heading, down to the next one that is not below it.
local function section(name, heading)
  local level, taken
  for line in page(name):gmatch "([^\n]*)\n" do
    local marks, words = line:match "^(#+) (.*)$"
    if taken and marks and #marks <= level then break end
    if words == heading then level, taken = #marks, {} end
    if taken then taken[#taken + 1] = line end
  end
  return table.concat(assert(taken, name .. " has no heading " .. heading), "\n")
end

-- What a pattern finds in the words in backquotes of a text, as keys; with a ^ at its beginning in the first of them only.
local function named(text, pattern)
  local found = {}
  for code in text:gmatch "`([^`\n]+)`" do
    if pattern:sub(1, 1) == "^" then found[code:match(pattern) or ""] = true
    else
      for word in code:gmatch(pattern) do found[word] = true end
    end
  end
  found[""] = nil
  return found
end

-- The first cells of the tables below a head whose first cell is `head`.
local function first_cells(text, head)
  local cells, inside = {}, false
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local cell = line:match "^| *(.-) *|"
    if not cell then inside = false
    elseif cell == head then inside = true
    elseif inside and not cell:find "^%-+$" then cells[#cells + 1] = cell end
  end
  return table.concat(cells, "\n")
end

local function keys(list)
  local found = {}
  for _, one in ipairs(list) do found[one] = true end
  return found
end

local function assert_same(known, told, where)
  local missing, more = {}, {}
  for name in pairs(known) do if not told[name] then missing[#missing + 1] = name end end
  for name in pairs(told) do if not known[name] then more[#more + 1] = name end end
  table.sort(missing)
  table.sort(more)
  assert.same({ missing = {}, unknown_to_the_program = {} }, { missing = missing, unknown_to_the_program = more }, where)
end

-- The text of all sources that `find` finds with some words.
local function sources(words)
  local found = {}
  local files = assert(io.popen("find " .. words .. " | sort"))
  for path in files:lines() do found[#found + 1] = read_file(path) end
  files:close()
  assert(#found > 50)
  return table.concat(found, "\n")
end

local function lua_sources() return sources "lua/crown lua/oracles lua/stores -name '*.lua'" end

describe("docs/command.md", function()
  -- The heading under which each verb's options are.
  local HEADINGS = { app = "Common options", run = "run", file = "file", cron = "cron", check = "check", info = "info and evict",
    evict = "info and evict", pause = "pause, resume and handover", resume = "pause, resume and handover",
    handover = "pause, resume and handover", redo = "redo", history = "history", status = "status, abdicate, log-level",
    abdicate = "status, abdicate, log-level", ["log-level"] = "status, abdicate, log-level", completion = "completion, help",
    help = "completion, help" }

  local common = {}
  for _, option in ipairs(command.common) do common["--" .. option.name] = true end

  it("has each option of each command in the command's section, and no other", function()
    local known, sections = {}, {}
    for _, verb in ipairs(command.verbs) do
      local heading = assert(HEADINGS[verb], verb)
      known[heading] = known[heading] or {}
      for _, option in ipairs(command.module(verb).options or {}) do known[heading]["--" .. option.name] = true end
      sections[heading] = section("command.md", heading)
    end
    for heading, options in pairs(known) do
      local told = named(sections[heading], "%-%-%l[%l-]*")
      for name in pairs(common) do told[name] = options[name] and told[name] or nil end
      for name in pairs(told) do -- of another command, which is named beside it
        for _, others in pairs(known) do if others[name] and not options[name] then told[name] = nil end end
      end
      assert_same(options, told, heading)
    end
  end)

  it("has the options that all commands take, with their variables", function()
    local text = section("command.md", "Common options")
    assert_same(common, named(text:gsub("`crown%-lua help %-%-man COMMAND`", ""), "%-%-%l[%l-]*"), "common")
    for _, option in ipairs(command.common) do
      if option.env then assert.matches("%-%-" .. option.name:gsub("%-", "%%-") .. "[^\n]*`" .. option.env .. "`", text) end
    end
  end)

  it("has the exit codes, and so have the other pages with such a table", function()
    local known = {}
    for _, one in ipairs(exit_codes) do known[one[1]] = true end
    local function codes_of(text)
      local found = {}
      for code in first_cells(text, "exit code"):gmatch "%d+[ +N]*" do found[code:match "^(.-)%s*$"] = true end
      found["137"] = nil -- 128 + 9
      return found
    end
    assert_same(known, codes_of(page "command.md"))
    assert_same(known, codes_of(page "troubleshooting.md"))
    for code in pairs(codes_of(page "app.md")) do assert.is_true(known[code], code) end
  end)
end)

-- The events of the core, and those that oracles have of their own.
local function events()
  local known = keys(elections.events())
  for name in lua_sources():gmatch 'emit%("([%l_.]+)"' do known[name] = true end
  known["log.dropped"] = true -- a line of the log alone
  return known
end

describe("docs/events.md", function()
  it("has each event, and no other", function()
    local known = events()
    assert_same(known, named(first_cells(page "events.md", "event"), "[%l_]+%.[%l_.]+"))
  end)

  it("names no other event on any page", function()
    local known, wrong = events(), {}
    local files = assert(io.popen "find docs -name '*.md' | sort")
    for path in files:lines() do
      for word in pairs(named(read_file(path), "^(%l+%.[%l_.]+)$")) do
        local is_event = word:match "^leadership%." or word:match "^child%.[%l_]+$" or word:match "^oracle%.[%l_.]+$"
        if word:match "%.lua$" or word:match "%.h$" then is_event = false end
        if is_event and not known[word] then wrong[#wrong + 1] = path .. ": " .. word end
      end
    end
    files:close()
    assert.same({}, wrong)
  end)
end)

describe("docs/endpoint.md", function()
  it("has each metric, and no other; the alerts and the dashboard know no other", function()
    local known = {}
    for _, file in ipairs { "metrics", "jobs" } do
      for name in read_file(("lua/crown/web/%s.lua"):format(file)):gmatch "crown_[%l_]+" do known[name] = true end
    end
    assert_same(known, named(first_cells(page "endpoint.md", "metrics"), "crown_[%l_]+"))
    for _, path in ipairs { "tools/monitoring/alerts.yml", "tools/monitoring/dashboard.json" } do
      for name in read_file(path):gmatch "crown_[%l_]+" do
        assert.is_true(known[name] or known[name:gsub("_bucket$", "")] or known[name:gsub("_count$", "")]
          or known[name:gsub("_sum$", "")] or false, path .. ": " .. name)
      end
    end
  end)
end)

describe("docs/environment.md", function()
  local AS_TEXT = '"([A-Z][A-Z0-9]*_[A-Z0-9_]+)"' -- in a list of variables, or behind the name of a function

  local function known_variables()
    local known = { NO_PROXY = true, no_proxy = true } -- libcurl's
    local lua, c = lua_sources(), sources "runtime -name '*.c'"
    for name in lua:gmatch 'os%.getenv%s*%(?"([%w_]+)"' do known[name] = true end
    for _, file in ipairs { "s3/login", "s3/profile", "consul/token" } do
      for name in read_file(("lua/crown/%s.lua"):format(file)):gmatch(AS_TEXT) do known[name] = true end
    end
    for names in lua:gmatch "in ipairs (%b{}) do[^\n]*os%.getenv%(name%)" do
      for name in names:gmatch '"([%w_]+)"' do known[name] = true end
    end
    for name in lua:gmatch "env%.(CROWN_[A-Z_]+) =" do known[name] = true end
    for name in lua:gmatch "env = { (CROWN_[A-Z_]+) =" do known[name] = true end
    for name in lua:gmatch 'option_of%(given, "%l+", "(CROWN_[A-Z_]+)"' do known[name] = true end
    for name in c:gmatch 'getenv%("([%w_]+)"%)' do known[name] = true end
    for name in c:gmatch '"([%w_]+_[pP][rR][oO][xX][yY])"' do known[name] = true end
    for name in read_file("runtime/candidate/workload.c"):gmatch '"(CROWN_[A-Z_]+)=' do known[name] = true end
    for name in read_file("runtime/child/options.c"):match("names%[%] = {(.-)}"):gmatch '"([%w_]+)"' do known[name] = true end
    for _, verb in ipairs(command.verbs) do
      for _, list in ipairs { command.common, command.module(verb).options or {} } do
        for _, option in ipairs(list) do known[option.env or "PATH"] = true end
      end
    end
    for name in read_file("tools/systemd/crown-run@.service"):gmatch "%$(CROWN_[A-Z_]+)" do known[name] = true end
    return known
  end

  it("has each variable that the program reads or sets, and no other", function()
    local told = named(first_cells(page "environment.md", "variable"), "^[%w_]+$")
    for _, name in ipairs { "PGHOST", "PGUSER", "PGPASSWORD" } do told[name] = nil end -- libpq's, which reads them itself
    assert_same(known_variables(), told)
  end)

  it("lists what is named on any other page", function()
    local listed, wrong = page "environment.md", {}
    local files = assert(io.popen "find docs README.md -name '*.md' ! -name decisions.md ! -name own-tests.md | sort")
    for path in files:lines() do
      for name in read_file(path):gmatch "CROWN_[A-Z_]+" do
        if not listed:find("`" .. name .. "`", 1, true) then wrong[#wrong + 1] = path .. ": " .. name end
      end
    end
    files:close()
    assert.same({}, wrong)
  end)
end)

describe("docs/app.md", function()
  it("has each option of an election, of a child and of a restart policy, and no other", function()
    local options = section("app.md", "Options of crown.elect")
    assert_same(election_options.election, named(first_cells(options, "option"), "^[%l_]+$"), "election")
    local children = section("app.md", "Children")
    assert_same(election_options.child, named(first_cells(children, "option"), "^[%l_]+$"), "child")
    for name in pairs(election_options.restart) do assert.is_truthy(children:find(name .. " = ", 1, true), name) end
  end)
end)

describe("the page of a store", function()
  local PAGES = { consul = "oracle-consul.md", etcd = "oracle-etcd.md", file = "oracle-file.md", http_lease = "oracle-http.md",
    kubernetes = "oracle-kubernetes.md",
    mysql = "oracle-mysql.md", nats_kv = "oracle-nats.md", oban_peer = "oracle-oban.md",
    postgres_advisory = "oracle-postgres-advisory.md", postgres_lease = "oracle-postgres.md", redis = "oracle-redis.md",
    registry = "registry.md", s3 = "oracle-s3.md", zookeeper = "oracle-zookeeper.md" }

  -- What an oracle takes: its rules, as it hands them to the one function that reads options, which asks nobody here.
  local function options_of(name)
    local real = { check = store_options.check, own = store_options.own }
    for which in pairs(real) do
      store_options[which] = function(_, _, rules, clients) error({ rules = rules, clients = clients or {} }, 0) end
    end
    local _, taken = pcall(require("crown.oracles." .. name).init, { node = "n", token = "t", crown_name = "x", given = {} })
    for which, fn in pairs(real) do store_options[which] = fn end
    local known = {}
    for _, list in pairs { taken.rules, taken.clients } do
      for option in pairs(list) do known[option] = true end
    end
    return known
  end

  it("is there for each store", function()
    local files = assert(io.popen "ls lua/oracles")
    for file in files:lines() do
      local name = file:match "^(.*)%.lua$"
      assert.is_truthy(PAGES[name] or name == "memory", name)
    end
    files:close()
  end)

  for name, file in pairs(PAGES) do
    it("has each of its options, and its table has no other: " .. name, function()
      local known, text = options_of(name), page(file)
      local told = named(first_cells(text, "option"), "^[%l_]+$")
      told.splay, told.backoff = nil, nil -- of every oracle
      for option in pairs(told) do assert.is_true(known[option], option) end
      local missing = {}
      for option in pairs(known) do
        local is_there = told[option] or text:find("[`?&]" .. option .. "[=`]") or option == "url" and text:find "url = "
        if not is_there then missing[#missing + 1] = option end
      end
      assert.same({}, missing)
    end)
  end

  -- What a reader finds on each of them under the same heading.
  local SECTIONS = { "Use it", "What it guarantees", "When something is wrong" }
  local HEADS = { ["| message | cause | what to do |"] = true, ["| what happens | what follows |"] = true }

  local function sections_of(text)
    local found = {}
    for words in text:gmatch "\n## ([^\n]+)" do
      for _, one in ipairs(SECTIONS) do found[#found + 1] = words == one and one or nil end
    end
    return found
  end

  for name, file in pairs(PAGES) do
    if name ~= "registry" then -- which is no oracle alone
      it("has the same sections as the others, with what belongs there: " .. name, function()
        assert.same(SECTIONS, sections_of(page(file)))
        local use, guarantees, wrong = section(file, SECTIONS[1]), section(file, SECTIONS[2]), section(file, SECTIONS[3])
        assert.matches("\n```sh\n.-crown%-lua run .-\n```\n.*\n### Options\n.*\n| option | default | |\n", use)
        assert.matches("\n### [^\n]-[Rr]ights\n", use)
        assert.matches("\n%- .*\n### Not guaranteed\n\n", guarantees)
        assert.matches("\n| message | cause | what to do |\n", wrong)
        for head in wrong:gmatch "\n\n(|[^\n]+)" do assert.is_true(HEADS[head], head) end
      end)
    end
  end
end)
