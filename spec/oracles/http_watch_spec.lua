-- What a follower over HTTP does with the watch that a server offers: a server that says what a spec wants said. The real one,
-- with real candidates, is in spec/fault/http_lease_spec.lua.
local conditions = require "crown.link.conditions"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.http_lease"
local Player = require "support.oracle_candidate"
local promise = require "crown.core.promise"

describe("a watch over HTTP", function()
  local listener, connections, gates, claims, watches, at_once, say_claim, say_watch
  local players -- an election that nobody holds asks for nothing

  local function reply(status, body)
    return ("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s"):format(status, #body, body)
  end

  local function told(last, ...)
    return reply(200, crown.json.encode { last = last, freed = { ... } })
  end

  local function offer(fields)
    return function() return reply(409, crown.json.encode(fields)) end
  end

  -- Holds a request open until the spec ends.
  local function hold()
    local gate = promise()
    gates[#gates + 1] = gate
    gate:wait(math.huge)
  end

  local function answer(line, body)
    if not line:find "^GET" then
      claims = claims + 1
      return say_claim(body)
    end
    watches[#watches + 1] = { line = line, at = crown.now() }
    local here = at_once -- one that was held may end in the next test
    here.now = here.now + 1
    here.most = math.max(here.most, here.now)
    local text = say_watch(#watches)
    here.now = here.now - 1
    return text
  end

  local function condition()
    for _, one in ipairs(conditions.all()) do
      if one.store == "http_lease watch" and one.server:find(listener:port(), 1, true) then return one end
    end
  end

  before_each(function()
    connections, gates, claims, watches, at_once, players = {}, {}, 0, {}, { now = 0, most = 0 }, {}
    say_claim, say_watch = offer { watch = "/watch", last = 7 }, hold
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      connections[#connections + 1] = connection
      for line in function() return connection:read("*l", 60) end do
        local length = 0
        for header in function() return connection:read "*l" end do
          if header == "\r" then break end
          length = tonumber(header:lower():match "^content%-length:%s*(%d+)") or length
        end
        local text = answer(line, length > 0 and connection:read(length) or "")
        if not text or not connection:write(text) then break end
      end
      connection:close()
    end))
  end)

  after_each(function()
    listener:close()
    for _, connection in ipairs(connections) do connection:close() end -- elections of one test ask on in the next
    for _, gate in ipairs(gates) do gate:resolve(true) end
  end)

  local function candidate(name, options)
    local given = { name = name, node = name, url = ("http://127.0.0.1:%d/locks"):format(listener:port()), ttl = 30, timeout = 20 }
    for key, value in pairs(options or {}) do given[key] = value end
    local one = Player.new(lease, given)
    players[#players + 1] = one
    return one
  end

  it("is one request for all that follow, and goes on where the refusal stood", function()
    local followers = {}
    for i = 1, 40 do
      followers[i] = candidate("e" .. i)
      assert.equal("denied", followers[i]:claim()[1])
    end
    eventually(function() return #watches == 1 end)
    for _, one in ipairs(followers) do one:claim() end
    assert.equal(80, claims)
    assert.equal(1, #watches)
    assert.equal("GET /locks/watch?after=7 HTTP/1.1\r", watches[1].line)
  end)

  it("tells those whose lease was freed, and nobody else", function()
    local followers, release = {}, promise()
    say_watch = function(number)
      if number > 1 then return hold() end
      release:wait(60)
      return told(9, "e2", "unknown", 5)
    end
    for i = 1, 3 do followers[i] = candidate("e" .. i) end
    for _, one in ipairs(followers) do one:claim() end
    release:resolve(true)
    eventually(function() return #watches == 2 end)
    assert.equal("GET /locks/watch?after=9 HTTP/1.1\r", watches[2].line)
    eventually(function() return followers[2]:message() == "freed" end)
    for _, one in ipairs(followers) do assert.is_nil(one:message()) end
    assert.equal(1, at_once.most)
  end)

  it("makes a follower claim, and does nothing to a leader", function()
    local one = candidate "e1"
    one:claim()
    assert.equal("denied", one:call("handle_info", "freed")[1])
    say_claim = function() return reply(200, '{"epoch":3}') end
    local verdict = one:call("handle_info", "freed")
    assert.same({ "granted", 3 }, { verdict[1], verdict[4] })
    local asked = claims
    assert.is_nil((one.module.handle_info(one.state, "freed")))
    assert.equal("granted", one:refresh()[1])
    say_claim = offer {}
    assert.equal("denied", one:refresh()[1])
    assert.equal("denied", one:call("handle_info", "freed")[1])
    assert.equal(asked + 3, claims)
  end)

  it("tells what was freed while a claim was on its way", function()
    local release = promise()
    say_watch = function(number)
      if number > 1 then return hold() end
      release:wait(60)
      return told(8, "late")
    end
    candidate("early"):claim()
    eventually(function() return #watches == 1 end)
    local late = candidate "late"
    say_claim = function()
      release:resolve(true)
      eventually(function() return #watches == 2 end, 20) -- the answer has been heard
      return offer { watch = "/watch", last = 7 }()
    end
    late:claim()
    assert.equal("freed", late:message())
  end)

  it("ends when nobody waits any more, and begins anew", function()
    local release = promise()
    say_watch = function()
      release:wait(60)
      return reply(204, "")
    end
    local one = candidate "e1"
    one:claim()
    eventually(function() return #watches == 1 end)
    say_claim = function() return reply(200, '{"epoch":3}') end
    assert.equal("granted", one:claim()[1])
    release:resolve(true)
    local poll = select(2, next(one.state.server.polls))
    eventually(function() return not poll.running end, 20)
    assert.equal(1, #watches)
    say_claim, say_watch = offer { watch = "/elsewhere", last = 12 }, hold
    one:refresh()
    eventually(function() return #watches == 2 end)
    assert.equal("GET /locks/elsewhere?after=12 HTTP/1.1\r", watches[2].line)
  end)

  -- Time that has to pass, whatever the machine: so many requests cannot have been made sooner.
  for title, case in pairs {
    ["says that there is nothing"] = { function() return reply(204, "") end, 7, 0.7 },
    ["tells the same again"] = { function() return told(9, "other") end, 8, 0.7 },
    ["goes back"] = { function(number) return told(1000 - number, "e1") end, 8, 0.7 },
    ["has always something new"] = { function(number) return told(10 + number, "e1", "other") end, 12, 1 },
    ["knows no watch"] = { function() return reply(404, "") end, 7, 0.7 },
    ["says what nobody understands"] = { function() return reply(200, '{"last":"x","freed":5}') end, 7, 0.7 },
    ["closes the connection"] = { function() return nil end, 7, 0.7 },
  } do
    it("is not asked without end where the server answers at once and " .. title, function()
      say_watch = case[1]
      local one = candidate "e1"
      one:claim()
      local function claim_on() return pcall(one.claim, one) end
      eventually(function()
        if one:message() then claim_on() end
        return #watches >= case[2]
      end, 30)
      assert.is_true(watches[case[2]].at - watches[1].at >= case[3], watches[case[2]].at - watches[1].at)
      assert.equal(1, at_once.most)
      assert.equal("denied", one:claim()[1]) -- which goes on as without it
    end)
  end

  it("keeps nobody from asking while the server never answers it", function()
    local one = candidate "e1"
    for _ = 1, 20 do assert.equal("denied", one:claim()[1]) end
    assert.equal(1, #watches)
    assert.is_nil(one:message())
    assert.equal("asked", condition().state)
  end)

  it("goes nowhere else: what is no path is left alone", function()
    for _, path in ipairs { "http://127.0.0.1:1/", "@127.0.0.1:1/", "", "watch", "/a?b=c", "/a b", "/a\r\nX: y", ("/a"):rep(200), 5,
      { 1 }, true } do
      say_claim = offer { watch = path, last = 7 }
      assert.equal("denied", candidate("e1"):claim()[1])
    end
    say_claim = offer { watch = "/watch", last = -1 } -- a number that is none: from now on
    assert.equal("denied", candidate("e1"):claim()[1])
    eventually(function() return #watches >= 1 end)
    assert.equal("GET /locks/watch HTTP/1.1\r", watches[1].line)
  end)

  it("bears the login, and is offered in an answer to many, too", function()
    say_claim = function() return reply(200, '{"answers":[{"status":409,"watch":"/watch","last":3}]}') end
    candidate("e1", { batch_path = "/batch", bearer = "abc" }):claim()
    eventually(function() return #watches == 1 end)
    assert.equal("GET /locks/watch?after=3 HTTP/1.1\r", watches[1].line)
  end)
end)
