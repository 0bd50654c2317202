-- The largest epoch that each store can give, wherever an epoch is told; and that the one above it is refused, with the reason.
local crown = require "crown"
local Etcd = require "support.etcd"
local files = require "crown.core.files"
local Nats = require "support.nats"
local port = require "support.port"
local Postgres = require "support.postgres"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"
local write_file = require "support.write_file"

local LARGEST, BEFORE, ABOVE = "9007199254740991", "9007199254740990", "9007199254740992"

-- Leads once, prints its epoch as each place tells it, and ends; or prints why it does not lead.
local APP = [[
local crown = require "crown"
local begun = os.getenv "CROWN_DIRECTORY" .. "/begun"
local program, url, oracle = arg[1], arg[2], crown.json.decode(arg[3])
oracle[1], oracle.word = oracle.word, nil
local function told(place, text) print(place .. " " .. (tostring(text):match '"epoch":([^,}]*)' or tostring(text))) end
crown.on("leadership.claimed", function(event) told("event", ("%d"):format(event.epoch)) end)
crown.on("oracle.error", function(event)
  print("error " .. event.error)
  os.exit(0)
end)
crown.elect { name = "large", oracle = oracle, child = { "sh", "-c", "echo environment $CROWN_EPOCH; >" .. begun .. "; exec sleep 60" },
  handlers = { won = function(term) crown.spawn(function()
    told("term", ("%d"):format(term.epoch))
    told("status", crown.exec({ program, "status", "--json" }).stdout)
    told("lists", url == "" and ("%d"):format(term.epoch) or crown.exec({ program, "info", "--json", "--oracle", url }).stdout)
    repeat crown.sleep(0.01) until io.open(begun)
    os.exit(0)
  end) end } }
]]

local function lead(oracle)
  local url = oracle.url or oracle.word
  if oracle.word == "http_lease" then url = "" end -- such a service lists nothing
  return run({ write_file(tempdir() .. "/app.lua", APP), program, url, crown.json.encode(oracle) },
    { env = { CROWN_DIRECTORY = tempdir() }, timeout = 30 })
end

-- @treturn string the epoch
local function tells(oracle, digits)
  local result = lead(oracle)
  digits = digits or result.stdout:match "term (%d+)" or "no epoch"
  for _, place in ipairs { "event", "term", "status", "lists", "environment" } do
    assert.truthy(result.stdout:find(("%s %s\n"):format(place, digits), 1, true), place .. ":\n" .. result.stdout .. result.stderr)
  end
  assert.truthy(result.stderr:find("epoch=" .. digits, 1, true), result.stderr)
  return digits
end

local function refuses(oracle, words)
  local result = lead(oracle)
  assert.matches("^error ", result.stdout, 1, result.stderr)
  assert.truthy(result.stdout:find(words, 1, true), result.stdout)
  assert.is_nil(result.stdout:find "term")
  assert.equal(1, select(2, result.stdout:gsub("error", "")), result.stdout)
end

-- As etcd writes a number, the highest byte first.
local function eight_bytes(number)
  local bytes = {}
  for i = 8, 1, -1 do bytes[i], number = string.char(number % 256), math.floor(number / 256) end
  return table.concat(bytes)
end

describe("the largest epoch", function()
  describe("in Postgres", function()
    local server

    setup(function() server = Postgres.start() end)
    teardown(function() server:destroy() end)
    before_each(function() server:empty() end) -- what is listed first is what the test has made

    it("is exact in a register, and the one above is refused", function()
      local oracle = { word = server.url .. "?ttl=1" }
      assert.equal(0, run({ "run", "--once", "--oracle", oracle.word, "large", "--", "true" }).code)
      server:sql([[UPDATE crown_lease_v1 SET version = 'by-hand', record = jsonb_set(record::jsonb, '{epoch}', $1::jsonb)::text
        WHERE lock_name = 'large']], BEFORE)
      tells(oracle, LARGEST)
      refuses(oracle, ABOVE)
    end)

    it("is exact with the advisory lock, and the one above is refused", function()
      local url = "postgres+advisory" .. server.url:sub(#"postgres" + 1)
      assert.equal(0, run({ "run", "--once", "--oracle", url, "large", "--", "true" }).code)
      local function set(epoch)
        server:sql(("UPDATE crown_advisory_v1 SET epoch = %s, acting_until = now() - interval '1 hour'"):format(epoch))
      end
      set(BEFORE)
      tells({ word = url }, LARGEST)
      for _, last in ipairs { LARGEST, ABOVE, "9223372036854775807" } do
        set(last)
        refuses({ word = url }, ("the last epoch was %s, and there is none above %s"):format(last, LARGEST))
        local info = run({ "info", "--oracle", url }).stdout
        assert.truthy(info:find(last, 1, true), info)
        assert.equal(last, server:sql("SELECT epoch::text AS epoch FROM crown_advisory_v1")[1].epoch)
      end
    end)

    it("is exact in a registry, and the one above is refused", function()
      local oracle = { word = "registry", url = "registry+" .. server.url, listen = "127.0.0.1:0", ttl = 3,
        secret = "sixteen bytes at least" }
      tells(oracle, "1")
      local function set(epoch)
        server:sql("UPDATE crown_registry_v1 SET members = '{}', leader = NULL, leader_token = NULL, epoch = " .. epoch
          .. ", assumed = " .. epoch)
      end
      set(BEFORE)
      tells(oracle, LARGEST)
      for _, last in ipairs { LARGEST, "9223372036854775807" } do
        set(last)
        refuses(oracle, LARGEST)
      end
    end)

    it("is exact where Oban tells it, to the microsecond", function()
      server:sql [[CREATE TABLE oban_peers (name TEXT PRIMARY KEY, node TEXT NOT NULL,
        started_at TIMESTAMP NOT NULL, expires_at TIMESTAMP NOT NULL)]]
      server:sql "GRANT SELECT ON oban_peers TO crown"
      local function started(at)
        server:sql "TRUNCATE oban_peers"
        server:sql([[INSERT INTO oban_peers VALUES ('Oban', 'app@one', $1::timestamp,
          timezone('UTC', clock_timestamp()) + interval '1 hour')]], at)
      end
      local oracle = { word = "oban_peer", url = "oban+" .. server.url, node = "app@one" }
      started "2026-11-22 12:13:14.123457"
      tells(oracle, "1795349594123457")
      started "2255-06-05 23:47:34.740991"
      tells(oracle, LARGEST)
      started "2255-06-05 23:47:34.740992"
      refuses(oracle, ABOVE)
    end)
  end)

  it("is exact in Redis, and the one above is refused", function()
    local server = Redis.start()
    finally(function() server:destroy() end)
    local oracle = { word = server.quick .. "&ttl=1" }
    assert.equal(0, run({ "run", "--once", "--wait", "10", "--oracle", oracle.word, "large", "--", "true" }).code)
    local key = "crown:{large}:record"
    local text = server:call("HGET", key, "record"):gsub('"epoch":%d+', '"epoch":' .. BEFORE)
    server:call("HSET", key, "version", "by-hand", "record", text)
    tells(oracle, LARGEST)
    refuses(oracle, ABOVE)
  end)

  -- A purge that goes beyond a stream's last message sets the number of the next.
  it("is exact in NATS, and the one above is refused", function()
    local server = Nats.start()
    finally(function() server:destroy() end)
    local url = server.url .. "/LARGE?ttl=2&refresh=0.5&amnesia_wait=0"
    assert.equal(0, run({ "run", "--once", "--wait", "10", "--oracle", url, "large", "--", "true" }).code)
    local wire = Wire.open(server.port)
    assert.is_true(wire:ask("$JS.API.STREAM.PURGE.KV_LARGE", nil, ('{"seq":%s}'):format(LARGEST)).success)
    wire.connection:close()
    tells({ word = url }, LARGEST)
    crown.sleep(2.2)
    refuses({ word = url }, "not a whole number from 1 to " .. LARGEST)
  end)

  -- A revision is a key of etcd's own database: its last one is replaced while the server is down.
  it("is exact in etcd, and the one above is refused", function()
    local server = Etcd.start()
    finally(function() server:destroy() end)
    local oracle = { word = server.quick .. "&ttl=1" }
    assert.equal(0, run({ "run", "--once", "--wait", "20", "--oracle", oracle.word, "large", "--", "true" }).code)
    local db = server.dir .. "/data/member/snap/db"
    local function set(revision)
      crown.sleep(0.5) -- what it has answered is in its log at once, in its database every 0.1 s
      server:down()
      local last = ""
      for main in read_file(db):gmatch "(........)_%z%z%z%z%z%z%z." do last = main > last and main:find "^%z" and main or last end
      assert(files.replace(db, (read_file(db):gsub("(........)(_%z%z%z%z%z%z%z.)", function(main, sub)
        return main == last and eight_bytes(revision) .. sub or nil
      end))))
      server:up()
    end
    local before = LARGEST - 20 -- every write has a revision, also those that are no claim
    set(before)
    local digits = tells(oracle)
    assert.is_true(tonumber(digits) > before and tonumber(digits) <= tonumber(LARGEST), digits)
    set(LARGEST)
    refuses(oracle, "not a whole number from 1 to " .. LARGEST)
  end)

  it("is exact over HTTP, and the one above is refused", function()
    local at, epoch = port.free(), LARGEST
    local listener = crown.tcp.listen("127.0.0.1", at, function(connection)
      connection:read "*l"
      local length = 0
      for header in function() return connection:read "*l" end do
        if header == "\r" then break end
        length = tonumber(header:lower():match "^content%-length: *(%d+)") or length
      end
      connection:read(length)
      local body = ('{"ttl":5,"epoch":%s}'):format(epoch)
      connection:write(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"):format(#body, body))
      connection:close()
    end)
    finally(function() listener:close() end)
    local oracle = { word = "http_lease", url = ("http://127.0.0.1:%d/locks"):format(at) }
    tells(oracle, LARGEST)
    for _, above in ipairs { ABOVE, "9007199254740993", "9223372036854775807", "18446744073709551616", "7.5" } do
      epoch = above
      refuses(oracle, "not a whole number from 1 to " .. LARGEST)
    end
  end)

  it("is exact in a file, and the one above is refused", function()
    local dir = tempdir()
    local function set(epoch) assert(files.replace(dir .. "/large.json", ('{"election":"large","epoch":%s}'):format(epoch))) end
    for _, digits in ipairs { "100000000000001", "123456789012345", LARGEST } do
      set(("%.0f"):format(digits - 1))
      tells({ word = "file:" .. dir }, digits)
      assert.truthy(read_file(dir .. "/large.json"):find('"epoch":' .. digits, 1, true))
    end
    refuses({ word = "file:" .. dir }, dir .. "/large.json: the last epoch was " .. LARGEST .. ", and there is none above")
  end)
end)
