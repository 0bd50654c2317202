-- The register in S3 asked by hand, on the stand-in and, where it is installed, on Ceph's radosgw: what a write names has to stand.
local Ceph = require "support.ceph"
local core = require "crown.core"
local driver = require "crown.stores.s3"
local promise = require "crown.core.promise"
local Server = require "support.s3_server"

local MANY, WRITERS, CONNECTIONS = 40, 12, 16

local serial = 0

for kind, Kind in pairs { ["the stand-in"] = Server, ["radosgw"] = Ceph } do
  local is_there = Kind ~= Ceph or Ceph.is_there

  describe("the register in S3, on " .. kind, function()
    local server, store, name

    local function open(more)
      local options = server:options(more)
      return assert(driver.open { url = options.url, options = options, timeout = 20 })
    end

    local function asks(what, fn)
      it(what, function()
        if not is_there then return pending(Ceph.MISSING) end
        serial = serial + 1
        name, store = "election-" .. serial, open()
        fn()
      end)
    end

    setup(function() server = is_there and Kind.start() end)
    teardown(function()
      if server then server:destroy() end
    end)

    local function look(of) return assert(store:look { of or name })[of or name] end

    local function swap(version, text, of)
      return assert(store:swap { { name = of or name, version = version, text = text } })[1]
    end

    asks("says that there is no record, and when that was", function()
      local answer = look()
      assert.same({ false, false, "" }, { answer.text, answer.version, answer.memory })
      assert.is_true(math.abs(answer.time - os.time() * 1000) < 120000)
    end)

    asks("writes only over the version that is named", function()
      local first = swap(false, "one")
      assert.is_string(first)
      assert.same({ "one", first }, { look().text, look().version })
      assert.is_true(look().age < 120)
      assert.is_false(swap(false, "two"))
      local second = swap(first, "two")
      assert.is_string(second)
      assert.is_true(second ~= first)
      assert.is_false(swap(first, "three"))
      assert.same({ "two", second }, { look().text, look().version })
    end)

    asks("writes nothing over a record that was deleted", function()
      local first = swap(false, "one")
      server:object("DELETE", name .. ".json")
      assert.is_false(swap(first, "two"))
      assert.is_false(look().text)
    end)

    asks("keeps names as they are, and lists them", function()
      local odd = { name .. "/a b", name .. ".", "..", name .. "%2F", name .. "é+&<'\"", "@" .. name, name:upper() }
      for _, one in ipairs(odd) do assert.is_string(swap(look(one).version, one, one)) end
      for _, one in ipairs(odd) do assert.equal(one, look(one).text) end
      local listed = {}
      for _, one in ipairs(assert(store:names())) do listed[one] = true end
      for _, one in ipairs(odd) do assert.is_true(listed[one], one) end
      assert.is_nil(listed["@conditions"])
    end)

    asks("writes and looks at many at once, each by its own version", function()
      local writes, names = {}, {}
      for i = 1, MANY do
        names[i] = ("%s-%d"):format(name, i)
        writes[i] = { name = names[i], version = false, text = "one" .. i }
      end
      for i, version in ipairs(assert(store:swap(writes))) do writes[i].version = i % 2 == 0 and version or '"another"' end
      for i, version in ipairs(assert(store:swap(writes))) do assert.equal(i % 2 == 0, version ~= false) end
      local found = assert(store:look(names))
      for i, one in ipairs(names) do assert.equal("one" .. i, found[one].text) end
    end)

    asks("lets one of many win who write at the same time", function()
      for _, version in ipairs { "none", "there" } do
        local over = version == "there" and look().version
        local done, won, left = promise(), 0, WRITERS
        for i = 1, WRITERS do
          local writer = open()
          core.detach(function()
            local versions = writer:swap { { name = name, version = over, text = ("%s %d"):format(version, i) } }
            if versions and versions[1] then won = won + 1 end
            left = left - 1
            if left == 0 then done:resolve(true) end
          end)
        end
        done:wait(60)
        assert.equal(1, won)
      end
    end)

    asks("says in which words a bucket is missing, and that a key is wrong", function()
      local one = assert(driver.open { url = "s3://another/x", options = server:options(), timeout = 20 })
      local found, problem, code = one:look { "x" }
      assert.same({ nil, "store" }, { found, code })
      assert.matches("^s3 at 127%.0%.0%.1:%d+: it answered 404 NoSuchBucket.*; make the bucket another,", problem)
    end)
  end)
end

describe("the register in S3, on a server that plays tricks", function()
  local server, store
  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    server:trick {}
    local options = server:options()
    store = assert(driver.open { url = options.url, options = options, timeout = 2 })
  end)

  local function swap(version, text)
    return store:swap { { name = "tricked-" .. serial, version = version, text = text } }
  end

  it("is refused where conditions are ignored", function()
    server:trick { ignores = true }
    local done, problem, code = swap(false, "one")
    assert.same({ nil, "usage" }, { done, code })
    assert.matches("^s3 at [%d.:]+: the server ignores If%-None%-Match: it is no store for elections", problem)
    server:trick {}
    assert.is_string(swap(false, "one")[1])
  end)

  -- A portal, a page for maintenance, a wrong endpoint behind a proxy: nobody must delete the record for it.
  it("takes a page with status 200 for no record, no list and no write", function()
    local first = swap(false, "one")[1]
    server:trick { status = 200, page = "<html>captive portal</html>", count = 99 }
    local name = "tricked-" .. serial
    for _, ask in ipairs { function() return store:look { name } end, function() return store:names() end,
      function() return store:health() end, function() return swap(first, "two") end } do
      local done, problem, code = ask()
      assert.same({ nil, "store" }, { done, code })
      assert.matches('^s3 at [%d.:]+: it answered 200 with what is not S3\'s: "<html>captive portal</html>"; '
        .. "this is not the store, so delete nothing: is the endpoint right", problem)
    end
    server:trick {}
    assert.equal("one", store:look({ name })[name].text)
  end)

  it("has check find that each write is a conflict, and not only one", function()
    server:trick { status = 409, code = "OperationAborted", method = "PUT", count = 1 }
    assert.same({}, store:rights(2))
    server:trick { status = 409, code = "OperationAborted", method = "PUT", count = 99 }
    local lacks, problem, code = store:rights(2)
    assert.same({ nil, "store" }, { lacks, code })
    assert.matches("^s3 at [%d.:]+: it answered 409 OperationAborted", problem)
    server:trick {}
  end)

  for _, case in ipairs {
    { "a conflict with another write", { status = 409, code = "ConditionalRequestConflict" }, "409 ConditionalRequestConflict" },
    { "a server that is busy", { status = 503, code = "SlowDown" }, "503 SlowDown" },
    { "a server that fails", { status = 500, code = "InternalError" }, "500 InternalError" },
    { "a write that is done, and not answered", { unsaid = true, count = 9 } },
    { "an answer that comes too late", { late = 5 } },
  } do
    it("does not know what became of a write after " .. case[1], function()
      local first = swap(false, "one")[1]
      case[2].count = case[2].count or 1
      server:trick(case[2])
      local done, problem = swap(first, "two")
      assert.is_nil(done)
      assert.matches(case[3] or "", problem)
    end)
  end

  it("lets a session's record not wait for what many ask", function()
    local session = "@session-" .. serial
    assert.is_string(store:swap({ { name = session, version = false, text = "one" } })[1])
    server:trick { late = 1, count = CONNECTIONS, method = "GET" }
    local names, done = {}, promise()
    for i = 1, 2 * CONNECTIONS do names[i] = ("many-%d-%d"):format(serial, i) end
    core.detach(function() done:resolve(store:look(names) ~= nil) end)
    core.sleep(0.2)
    local began = core.now()
    assert.equal("one", store:look({ session })[session].text)
    assert.is_true(core.now() - began < 0.6)
    assert.is_true(done:wait(10))
  end)

  it("takes a write that was done twice for one that another one may have done", function()
    local first = swap(false, "one")[1]
    server:trick { unsaid = true, count = 1 } -- the client asks again on another connection, or gives up
    local done = swap(first, "two")
    assert.is_false(done and done[1] or false)
    server:trick {}
    assert.equal("two", store:look({ "tricked-" .. serial })["tricked-" .. serial].text)
  end)
end)
