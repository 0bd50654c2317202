-- Answers that are too big: refused above a bound, so that memory is bounded and the loop goes on.
local crown = require "crown"
local judge = require "support.judge"
local Postgres = require "support.postgres"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local GROWN_MOST = 120 -- MiB, at the most at once, beside what the program has before it asks
local TRIES = 3

-- Asks one thing, and prints the outcome, by how many MiB the process has grown at the most, and what the loop did meanwhile.
local APP = [[
package.path = "spec/?.lua;" .. package.path
local crown = require "crown"
local Hostile = require "support.hostile"
local function size(word) return tonumber(io.open("/proc/self/status"):read("*a"):match(word .. ":%%s+(%%d+)")) / 1024 end
local ask
%s
local before = size "VmRSS"
local answer, problem, code = ask()
print(answer and (type(answer) == "table" and #answer or answer), problem, code)
print(("GROWN %%d"):format(size "VmHWM" - before))
os.exit(0)
]]

-- Serves a reply of many pieces.
local SERVE = [[
local listener = crown.tcp.listen("127.0.0.1", 0, function(connection)
  %s
  connection:write(%s)
  local piece = %s
  for _ = 1, %d do
    if not connection:write(piece) then return end
  end
  connection:read("*a", 60)
end)
]]
local REDIS = [[
local client = assert(crown.redis.connect("redis://127.0.0.1:" .. listener:port(), { timeout = 60 }))
function ask() return client:call "GET" end]]
local HTTP = [[
function ask()
  local answer, problem, code = crown.http.request { url = "http://127.0.0.1:" .. listener:port() .. "/", timeout = 60 }
  return answer and #answer.body, problem, code
end]]
local NATS = [[
local connection = assert(require("crown.nats.connection").open({}, { host = "127.0.0.1", port = listener:port() }, 60))
function ask() return connection:request("a", nil, "x", 60) end]]
local POSTGRES = [[
function ask()
  local url = ("postgres://x@127.0.0.1:%d/x?sslmode=disable"):format(listener:port())
  return crown.postgres.connect(url, { timeout = 20 })
end]]

local MIB = "('x'):rep(1048576)"
local OK = [["HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"]]
local GREETED = [[connection:write "INFO {}\r\n" repeat local line = connection:read("*l", 20) until line == "PING\r"
  connection:write "PONG\r\n" repeat line = connection:read("*l", 20) until line:find "^PUB"]]
local HEARD = [[connection:read("*l", 20)]]

local function ask_once(app, most)
  local dir = tempdir()
  local result = run({ write_file(dir .. "/app.lua", APP:format(app)) }, { env = { CROWN_LOOP_HELD = dir .. "/held" }, timeout = 60 })
  local grown = tonumber(result.stdout:match "GROWN (%d+)")
  assert(grown, result.stdout .. result.stderr)
  assert.is_true(grown < (most or GROWN_MOST), result.stdout)
  return result.stdout:match "^[^\n]*", dir .. "/held"
end

-- An answer that holds the loop does so each time, a machine that stands still does not.
local function asked(app, most)
  local answer, held
  for _ = 1, TRIES do
    answer, held = ask_once(app, most)
    if pcall(judge.loop, held) then return answer end
  end
  judge.loop(held)
end

describe("an answer that is too big", function()
  local CASES = {
    ["a text of Redis"] = { SERVE:format(HEARD, [["$100000000\r\n"]], MIB, 96) .. REDIS,
      "nil\tredis at [%d.:]+: a reply of more than 16 MiB" },
    ["an array of Redis"] = { SERVE:format(HEARD, [["*100001\r\n"]], [[(":1\r\n"):rep(1000)]], 101) .. REDIS,
      "nil\tredis at [%d.:]+: a reply that is too big" },
    ["arrays in an array of Redis"] = { SERVE:format(HEARD, [["*1000\r\n"]], [["*1000\r\n" .. (":1\r\n"):rep(1000)]], 1000) .. REDIS,
      "nil\tredis at [%d.:]+: a reply that is too big" },
    ["an answer over HTTP"] = { SERVE:format(HEARD, OK, MIB, 100) .. HTTP, "nil\tan answer of more than 16777216 bytes\tprotocol" },
    ["a header over HTTP"] = { SERVE:format(HEARD, [["HTTP/1.1 200 OK\r\n"]], [["A: " .. ("x"):rep(1000) .. "\r\n"]], 1000) .. HTTP,
      "nil\t.*protocol" },
    ["a message of NATS"] = { SERVE:format(GREETED, [["MSG a 1 100000000\r\n"]], MIB, 96) .. NATS, "nil\t.*" },
    ["a message of Postgres before anybody may ask"] = { SERVE:format([[connection:read "*s"]],
      [["R\0\0\0\8\0\0\0\0Z\0\0\0\5ID\48\0\0\0"]], MIB, 400) .. POSTGRES,
      "nil\tpostgres at [%d.:]+: more than 1 MiB before the connection was open" },
    ["notifications of Postgres before anybody may ask"] = { SERVE:format([[connection:read "*s"]],
      [["R\0\0\0\8\0\0\0\0Z\0\0\0\5I"]], [[("A\0\0\0\12\0\0\0\1n\0x\0"):rep(80660)]], 40) .. POSTGRES,
      "nil\tpostgres at [%d.:]+: more than 1 MiB before the connection was open" },
    ["a line of NATS"] = { SERVE:format(GREETED, [["MSG "]], MIB, 96) .. NATS, "nil\tnats at [%d.:]+: a line of more than 1048576 bytes" },
  }
  for what, case in pairs(CASES) do
    it("is refused: " .. what, function() assert.matches("^" .. case[2], asked(case[1])) end)
  end

  it("of Redis is taken where it is as large as allowed", function()
    assert.matches("^99999\t", asked(SERVE:format(HEARD, [["*99999\r\n"]], [[(":1\r\n"):rep(9)]], 11111) .. REDIS))
  end)
end)

describe("a result of Postgres that is too big", function()
  local server

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)

  local function queried(sql, url, most)
    return asked(([[
local client = assert(crown.postgres.connect("%s", { timeout = 60 }))
assert(client:query "SELECT 1")
function ask() return client:query %q end]]):format(url or server.url, sql), most)
  end

  for what, sql in pairs {
    ["many rows"] = "SELECT i FROM generate_series(1, 1500000) i",
    ["large values"] = "SELECT repeat('x', 1000000) FROM generate_series(1, 100)",
  } do
    it("is refused: " .. what, function()
      assert.matches("^nil\ta result of more than 32 MiB.*protocol$", queried(sql))
    end)
  end

  -- libpq makes room for all of it, and reads for as long as something is there: a server that is fast enough is read to the end.
  it("is refused: one value of 200 MB", function()
    assert.matches("^nil\t.*more than 32 MiB.*protocol$", queried("SELECT repeat('x', 200000000)", nil, 500))
  end)

  it("costs its own connection, and the next question is answered", function()
    local client = assert(crown.postgres.connect(server.url, { timeout = 60 }))
    assert.is_nil((client:query "SELECT i FROM generate_series(1, 1500000) i"))
    assert.equal(1, assert(client:query "SELECT 1 AS one")[1].one)
    client:close()
  end)

  it("is handed over in slices where it is large, but not too large", function()
    assert.matches("^200000\t", queried "SELECT i FROM generate_series(1, 200000) i")
  end)

  it("is made into Lua tables a part at a time", function()
    local client = assert(crown.postgres.connect(server.url, { timeout = 60 }))
    local rows, rest = client.bare:query("SELECT i FROM generate_series(1, 20000) i", 60, 0)
    assert.is_true(#rows > 0 and #rows <= 10000, tostring(#rows))
    local before = #rows
    assert.is_true(rest:fill(rows))
    assert.is_true(#rows > before and #rows < 20000)
    while rest:fill(rows) do end
    assert.same({ 20000, false }, { #rows, rest:fill(rows) })
    client:close()
  end)

  it("is whole, each row in its place, and with what it touched", function()
    local client = assert(crown.postgres.connect(server.url, { timeout = 60 }))
    local rows = assert(client:query "SELECT i, CASE WHEN i % 2 = 0 THEN 'x' || i END AS t FROM generate_series(1, 20000) i")
    client:close()
    assert.same({ 20000, 20000 }, { #rows, rows.affected })
    for i, row in ipairs(rows) do
      if row.i ~= i or row.t ~= (i % 2 == 0 and "x" .. i or nil) then error("row " .. i) end
    end
  end)
end)
