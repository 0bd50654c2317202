-- What a store holds may be no UTF-8, where others than crown-lua write into it. What crown-lua writes as JSON is.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local is_utf8 = require "crown.text.is_utf8"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"

local NAME, NODE = "caf\233", "n\233e \195\169 \237\160\128" -- Latin-1, a character, and half a pair of UTF-16
local SHOWN_NAME, SHOWN_NODE = "caf\239\191\189", "n\239\191\189e \195\169 \239\191\189\239\191\189\239\191\189"

describe("bytes of a store that are no UTF-8", function()
  local server, one, dir, port

  -- A lease as an older version keeps it, and as somebody else may write it.
  local function lease(name)
    local key = "crown:{" .. name .. "}:"
    server:call("SET", key .. "epoch", "7")
    server:call("HSET", key .. "lease", "token", "t", "node", NODE, "epoch", "7", "claim", "1", "ttl", "600000")
    server:call("PEXPIRE", key .. "lease", "600000")
  end

  setup(function()
    server, dir = Redis.start(), tempdir()
    lease "web"
    lease(NAME)
    one = Candidate.start { args = { "--log-level", "info", "run", "--oracle", server.url, "--http", "127.0.0.1:0", "web", "sleep",
      "60" }, node = "one", log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
    port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
    eventually(function() return http.ask(port, "GET /leader/web").body:find '"epoch":7' end, 20)
  end)
  teardown(function()
    one:destroy()
    server:destroy()
  end)

  local function decoded(text)
    assert.is_true(is_utf8(text), text)
    return crown.json.decode(text)
  end

  local function call(...)
    return decoded(run({ ... }, { env = { CROWN_DIRECTORY = dir } }).stdout)
  end

  it("are replaced in what info, status and history say to programs", function()
    local found = call("info", "--oracle", server.url, "--json").elections
    table.sort(found, function(a, b) return a.name < b.name end)
    assert.same({ SHOWN_NAME, SHOWN_NODE, "web", SHOWN_NODE }, { found[1].name, found[1].node, found[2].name, found[2].node })
    assert.equal(SHOWN_NODE, call("status", "--json").runtimes[1].elections[1].leader)
    assert.equal("table", type(call("status", "--stores", "--json").runtimes))
    assert.equal("table", type(call("history", "--json").terms))
  end)

  it("are replaced in what the HTTP endpoint says", function()
    assert.equal(SHOWN_NODE, decoded(http.ask(port, "GET /leader/web").body).leader)
    for _, path in ipairs { "/api/elections", "/api/elections/1" } do
      local told = decoded(http.ask(port, "GET " .. path).body)
      assert.equal(SHOWN_NODE, told.elections[1].leader)
    end
    local stamp = decoded(http.ask(port, "GET /api/elections").body).stamp
    assert.is_true(decoded(http.ask(port, "GET /api/elections?since=" .. stamp).body).delta)
  end)

  it("are left as they are in what an app encodes for itself", function()
    assert.equal('"caf\233"', crown.json.encode(NAME))
  end)
end)
