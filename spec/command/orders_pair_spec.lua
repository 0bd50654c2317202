-- Operators' orders on an oracle of the user's own that has look_orders and swap_orders: that of the example, with real processes.
local Candidate = require "support.candidate"
local crown = require "crown"
local Election = require "support.ordered_election"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local SOON = Election.SOON
local EXAMPLE = "lua/examples/custom_oracle"

describe("an operator's order on an oracle of one's own", function()
  local server, url, dir, election

  setup(function()
    dir = tempdir()
    server = Candidate.start { args = { EXAMPLE .. "/lease_server.lua", "0" }, node = "server", log = dir .. "/server" }
    local port = eventually(function() return tonumber(server:output():match "port (%d+)") end, SOON)
    url = ("tcp_lease://127.0.0.1?port=%d&ttl=1"):format(port)
    write_file(dir .. "/orderless.lua", [[
      local mine = {}
      for name, fn in pairs(require "tcp_lease") do mine[name] = fn end
      mine.look_orders, mine.swap_orders = nil, nil
      return mine]])
    write_file(dir .. "/deaf_to_orders.lua", [[
      local mine = setmetatable({}, { __index = require "tcp_lease" })
      function mine.look_orders() return nil, "orders are kept elsewhere", "store" end
      return mine]])
  end)
  teardown(function() server:destroy() end)

  before_each(function() election = Election.new(url, dir, { LUA_PATH = ("%s/?.lua;%s/?.lua;;"):format(EXAMPLE, dir) }) end)
  after_each(function() election:destroy() end)

  it("pauses, resumes and hands over, and is shown", function()
    local name = election.name
    local one, two, three = election:leader "one", election:follower "two", election:follower "three"
    assert.matches("^'[%w-]+' is paused until crown%-lua resume\none leads no more\n$",
      election:command(0, "pause", name, "--why", "a new disk", "--wait", SOON))
    local said = "paused since %d+%-%d+%-%d+ %d+:%d+:%d+ [+-]%d%d%d%d by [%w@.-]+: a new disk"
    election:says(one, "leadership.lost [^\n]*reason=paused error=\"" .. said)
    election:says(two, "leadership.barred [^\n]*reason=paused error=\"" .. said)
    assert.matches("reason=paused", one:output())
    local listed = crown.json.decode(election:command(0, "info", "--json")).elections[1]
    assert.same({ true, "a new disk", nil }, { listed.orders.pause, listed.orders.why, listed.node })
    assert.matches(said, election:command(0, "status"))
    assert.equal(0, election:count(one, two, three))
    assert.matches("^crown%-lua: run: '[%w-]+' is " .. said .. "\n$", election:command(1, "run", "--once", name, "true"))
    assert.equal(("'%s' may be led again\n"):format(name), election:command(0, "resume", name))
    election:is_led_by_one_of(one, two, three)
    assert.matches("is not paused", election:command(1, "resume", name))
    assert.matches("is led by three now", election:count(three) == 1 and "is led by three now"
      or election:command(0, "handover", name, "--to", "three", "--wait", SOON))
    election:leads(three)
    assert.matches("is led by one now", election:command(0, "handover", name, "--to", "one", "--wait", SOON))
    election:leads(one)
    assert.matches("nobody did not come: '[%w-]+' is led by %a+ now",
      election:command(1, "handover", name, "--to", "nobody", "--within", 1, "--wait", SOON))
    election:is_led_by_one_of(one, two, three)
    assert.matches("; %a+ leads on\n$", election:command(0, "pause", name, "--keep"))
    assert.matches("is paused since .*: resume it first", election:command(1, "handover", name, "--to", "two"))
    assert.equal(1, election:count(one, two, three))
    election:command(0, "resume", name)
    local four = election:start("four", "run", "--oracle", url, "--prefer", "5", "--preempt", "1", name, "sleep", "600")
    election:leads(four)
    assert.equal(0, election:count(one, two, three))
    assert.matches("four 5", election:command(0, "info"))
  end)

  it("is refused in a sentence where its module has not the two functions, and so is a preference", function()
    local orderless = url:gsub("^tcp_lease", "orderless")
    for _, verb in ipairs { "pause", "resume" } do
      assert.equal(("crown-lua: %s: elections of the oracle 'orderless' take no orders: its module has no look_orders and "):format(verb)
        .. "swap_orders (docs/custom-oracles.md)\n", election:command(2, verb, "--oracle", orderless, "x"))
    end
    assert.matches("preference: with the oracle 'orderless' candidates know nothing of each other",
      election:command(2, "run", "--oracle", orderless, "--prefer", "5", "x", "true"))
  end)

  it("that its store cannot tell keeps nobody from leading, and check and the log say why", function()
    local deaf = url:gsub("^tcp_lease", "deaf_to_orders")
    local one = election:start("one", "run", "--oracle", deaf, election.name, "sleep", "600")
    election:leads(one)
    election:says(one, "oracle.error [^\n]*operators' orders cannot be read here, and are not obeyed until they can: "
      .. "orders are kept elsewhere")
    assert.matches("warning +operators' orders cannot be read: orders are kept elsewhere",
      election:command(0, "check", "--store", "--oracle", deaf, "run", "x", "true"))
    assert.matches("pause: .*orders are kept elsewhere", election:command(3, "pause", "--oracle", deaf, election.name))
    assert.equal(1, election:count(one))
  end)
end)
