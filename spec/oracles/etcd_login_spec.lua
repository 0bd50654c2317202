-- The pass of etcd: a login costs etcd time, on a busy host more than a question may take.
local Client = require "crown.etcd.client"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"

local LOGIN = "root:secret"
local KEY = { key = "YQ==" }

local function answer(status, body)
  return ("hear POST\nsay HTTP/1.1 %d X\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n%s"):format(status, #body, body)
end

local WELL = answer(200, [[{"header":{"revision":"7"},"token":"b.2"}]]) -- to a question and to a login

describe("the pass of an etcd client", function()
  local server, client

  after_each(function() server:destroy() end)

  local function client_of(place, timeout)
    client = Client.new(Client.parse(("etcd://%s@%s"):format(LOGIN, place)), timeout)
    return client
  end

  local function ask(times)
    local answered = 0
    for _ = 1, times do
      crown.spawn(function()
        if client:ask("/v3/kv/range", KEY) then answered = answered + 1 end
      end)
    end
    eventually(function() return answered == times end)
  end

  it("is got also where etcd computes on a login for longer than a question may take", function()
    server = Etcd.start(nil, { "--bcrypt-cost", "14" }) -- a second; a question gets a quarter of one at least
    server:secure(LOGIN)
    assert.is_nil((client_of(server.endpoint, 0.25):ask("/v3/kv/range", KEY))) -- else that was no long login
    eventually(function() return client:ask("/v3/kv/range", KEY) end, 20)
  end)

  -- A pass names how far etcd had come when it was given: an etcd that is not there yet waits, and says nothing.
  it("is got anew where etcd was made anew, and keeps those waiting who have one of before", function()
    server = Etcd.start()
    for i = 1, 30 do server:ctl("put", "k", tostring(i)) end
    server:secure(LOGIN)
    client_of(server.endpoint, 1)
    eventually(function() return client:ask("/v3/kv/range", KEY) end, 20)
    server:down()
    server:wipe()
    server:up()
    server:secure(LOGIN)
    eventually(function() return client:ask("/v3/kv/range", KEY) end, 20)
  end)

  it("is got once for all who ask at the same time", function()
    server = Hostile.start(WELL)
    client_of("127.0.0.1:" .. server.port, 5)
    ask(10)
    assert.equal(1 + 10, server.count)
  end)

  it("is not lost by a late word that the one before is not taken any more", function()
    local refusal = answer(401, [[{"error":"etcdserver: invalid auth token"}]])
    server = Hostile.start(refusal, (refusal:gsub("\n", "\nwait 1\n")), WELL)
    client_of("127.0.0.1:" .. server.port, 5).login.pass = "a.1"
    ask(2)
    assert.equal(2 + 1 + 2, server.count) -- questions, a login, the same questions
  end)
end)
