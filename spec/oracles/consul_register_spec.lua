-- The register in Consul asked by hand, on the stand-in: what a write names has to stand, and followers are told.
local core = require "crown.core"
local driver = require "crown.stores.consul"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local promise = require "crown.core.promise"
local Server = require "support.consul_server"

local WRITERS, MANY = 12, 40

describe("the register in Consul", function()
  local server, store, name
  local serial = 0

  local function open(more, timeout)
    local options = server:options(more)
    return assert(driver.open { url = options.url, options = options, timeout = timeout or 5 })
  end

  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    server:trick {}
    name, store = "election-" .. serial, open(nil, 2)
  end)

  local function look(of, by) return assert((by or store):look { of or name })[of or name] end

  local function swap(version, text, of, by)
    local versions, problem, code = (by or store):swap { { name = of or name, version = version, text = text } }
    if not versions then return nil, problem, code end
    return versions[1]
  end

  it("writes only over the index that is named", function()
    assert.same({ false, false, "" }, { look().text, look().version, look().memory })
    local first = swap(false, "one")
    assert.same({ "one", first }, { look().text, look().version })
    assert.is_false(swap(false, "two"))
    local second = swap(first, "two")
    assert.is_true(tonumber(second) > tonumber(first))
    assert.is_false(swap(first, "three"))
    assert.same({ "two", second }, { look().text, look().version })
    assert.is_false(swap(first, false))
    assert.is_truthy(swap(second, false))
    assert.is_false(look().text)
    assert.is_false(swap(second, "four"))
    assert.is_true(tonumber(swap(false, "five")) > tonumber(second))
  end)

  it("keeps names as they are in keys that each version of Consul takes, and lists them", function()
    local odd = { name .. "/a b", name .. ".sh", "..", name .. ",2F", name .. "é+&<'\"", "@" .. name, name:upper(), "bell", "tried" }
    for _, one in ipairs(odd) do assert.is_string(swap(look(one).version, one, one)) end
    for _, one in ipairs(odd) do assert.equal(one, look(one).text) end
    local listed, count = {}, 0
    for _, one in ipairs(assert(store:names())) do listed[one], count = true, count + 1 end
    for _, one in ipairs(odd) do assert.is_true(listed[one], one) end
    assert.equal(#odd + 1, count) -- and the one that the last test left, but not the bell
  end)

  it("writes and looks at many at once, each by its own index", function()
    local writes, names = {}, {}
    for i = 1, MANY do
      names[i] = ("%s-%d"):format(name, i)
      writes[i] = { name = names[i], version = false, text = "one" .. i }
    end
    for i, version in ipairs(assert(store:swap(writes))) do
      writes[i].version, writes[i].text = i % 2 == 0 and version or "5", "two" .. i
    end
    for i, version in ipairs(assert(store:swap(writes))) do assert.equal(i % 2 == 0, version ~= false) end
    local found = assert(store:look(names))
    for i, one in ipairs(names) do assert.equal((i % 2 == 0 and "two" or "one") .. i, found[one].text) end
  end)

  it("lets one of many win who write at the same time", function()
    for _, over in ipairs { false, true } do
      local version = over and look().version
      local done, won, left = promise(), 0, WRITERS
      for i = 1, WRITERS do
        local writer = open()
        core.detach(function()
          if swap(version, ("%s %d"):format(tostring(over), i), nil, writer) then won = won + 1 end
          left = left - 1
          if left == 0 then done:resolve(true) end
        end)
      end
      done:wait(60)
      assert.equal(1, won)
    end
  end)

  it("sees what stands, also where an agent answers other reads from what was", function()
    local first = swap(false, "one")
    server:trick { stale = true }
    assert.is_string(swap(first, "two"))
    assert.equal("two", look().text)
  end)

  for _, case in ipairs {
    { "servers without a leader", { leader = false }, "500: No cluster leader" },
    { "a server that is busy", { status = 429, message = "rate limit reached", count = 1 }, "429: rate limit reached" },
    { "a server that fails", { status = 500, message = "rpc error: EOF", count = 1 }, "500: rpc error: EOF" },
    { "a write that is done, and never answered", { unsaid = true, count = 9 }, "" },
    { "an answer that comes too late", { late = 3, count = 1 }, "Timeout was reached" },
  } do
    it("does not know what became of a write after " .. case[1], function()
      local first = swap(false, "one")
      server:trick(case[2])
      local done, problem = swap(first, "two")
      assert.is_nil(done)
      assert.matches("^consul at 127%.0%.0%.1:%d+: .*" .. case[3], problem)
    end)
  end

  it("knows a write for its own that went out twice", function()
    local first = swap(false, "one")
    server:trick { unsaid = true, count = 1 } -- the client asks again on another connection, or gives up
    local done = swap(first, "two")
    server:trick {}
    assert.equal("two", look().text)
    assert.is_true(done == nil or done == look().version)
  end)

  it("asks the next agent where one is not there", function()
    local options = server:options()
    for _, hosts in ipairs { "127.0.0.1:%d,127.0.0.1:%d", "127.0.0.1:%d,[::1]:%d,127.0.0.1:" .. server.port } do
      local several = assert(driver.open { url = "consul://" .. hosts:format(port.free(), server.port) .. "/spec", options = options,
        timeout = 3 })
      assert.is_table(several:look { name })
      assert.is_string(swap(look().version, hosts, nil, several))
    end
  end)

  it("lets an agent hold a question open for as long as it says, also where there are several", function()
    local Client = require "crown.consul.client"
    local two = assert(Client.new(("consul://127.0.0.1:%d,127.0.0.1:%d/spec"):format(server.port, server.port), {}, false))
    local first = assert(two:ask({ path = "/v1/kv/spec/none" }, 2))
    local began = core.now()
    local path = ("/v1/kv/spec/none?index=%.0f&wait=1s"):format(Client.index(first))
    assert.equal(404, assert(two:ask({ path = path, held = true }, 1.6)).status)
    assert.is_true(core.now() - began >= 0.9)
  end)

  -- --- the bell

  local function hearing()
    local told, hearer = {}, open()
    assert.is_true(hearer.deaf)
    hearer:hear(function(of, news, is_own) told[#told + 1] = { name = of, news = news, is_own = is_own } end)
    eventually(function() return not hearer.deaf and #told == 1 end, 5)
    assert.is_nil(told[1].name)
    return told, hearer
  end

  it("tells followers what was freed, with the version that stands", function()
    local told = hearing()
    local version
    for i, text in ipairs { "one", "two" } do -- what comes at first may be told as something that was missed
      version = assert(store:swap { { name = name, version = version or false, text = text, frees = true } })[1]
      eventually(function() return #told >= i + 1 end, 5)
    end
    eventually(function() return told[#told].name == name end, 5)
    assert.same({ text = "two", version = version }, told[#told].news)
    assert.is_false(told[#told].is_own)
    local before = #told
    assert(store:swap { { name = name, version = version, text = "three", quiet = true } })
    assert(store:swap { { name = "@s-" .. serial, version = false, text = '{"v":1,"serial":1,"ttl":2,"at":1,"memory":""}' } })
    core.sleep(0.2)
    assert.equal(before, #told)
  end)

  it("has all look where it may have missed something", function()
    local told, hearer = hearing()
    for i = 1, 8 do
      local ringer = open()
      core.detach(function() swap(false, "one", ("%s-%d"):format(name, i), ringer) end)
    end
    eventually(function() return #told > 1 end, 5)
    core.sleep(1.2) -- longer than it waits after it has had all look
    local heard, all = {}, false
    for i = 2, #told do
      all = all or told[i].name == nil
      heard[told[i].name or ""] = true
    end
    for i = 1, 8 do
      assert.is_string(look(("%s-%d"):format(name, i)).version)
      assert.is_true(all or heard[("%s-%d"):format(name, i)] or false)
    end
    assert.is_string(swap(false, "one", nil, hearer)) -- with what it knows of the bell
    eventually(function() return told[#told].name == nil or told[#told].is_own end, 5)
  end)

  it("tells by name of those that rang between two questions", function()
    local told = hearing()
    local _, writer = hearing()
    local before, heard = #told, {}
    for i = 1, 4 do assert.is_string(swap(false, "one", ("%s.%d"):format(name, i), writer)) end
    eventually(function() return #told >= before + 4 end, 5)
    for i = before + 1, #told do heard[#heard + 1] = told[i].name or "all" end
    assert.same({ name .. ".1", name .. ".2", name .. ".3", name .. ".4" }, heard)
  end)

  it("is deaf while nobody answers, and has all look when that ends", function()
    local told, hearer = hearing()
    server:down()
    eventually(function() return hearer.deaf end, 5)
    local before = #told
    server:up()
    eventually(function() return not hearer.deaf and #told > before end, 10)
    assert.is_nil(told[#told].name)
  end)

  it("goes on where the indexes begin anew", function()
    local told, hearer = hearing()
    server:trick { index = 0 }
    assert.is_string(swap(false, "one"))
    eventually(function() return #told > 1 and not hearer.deaf end, 5)
  end)
end)
