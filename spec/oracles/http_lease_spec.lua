local authority = require "support.authority"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.http_lease"
local Player = require "support.oracle_candidate"
local run = require "support.run"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"

local server = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua" }, node = "server",
  log = tempdir() .. "/log" }
local port = eventually(function() return tonumber(server:output():match "port (%d+)") end, 10)

describe("the example's lease server", function()
  local function status_of(method, path, body)
    return assert(crown.http.request { url = ("http://127.0.0.1:%d%s"):format(port, path), method = method, body = body }).status
  end

  it("says what it has no answer for, whatever comes", function()
    for _, body in ipairs { "5", "null", "[]", "{}", '{"asked":5}', "nonsense", "" } do
      assert.equal(400, status_of("POST", "/locks/batch", body), body)
      assert.equal(400, status_of("POST", "/locks/x/claim", body), body)
      assert.equal(404, status_of("POST", "/elsewhere", body), body)
    end
  end)
end)

describe("what is not asked of an oracle", function()
  for _, url in ipairs { "http://127.0.0.1:1/locks", "memory:x" } do
    it("is told as that, with what to do, by " .. url, function()
      for _, words in ipairs { { "info" }, { "evict", "reports" } } do
        local refused = run(words, { env = { CROWN_ORACLE = url } })
        assert.equal(2, refused.code)
        assert.matches("'crown%-lua status' and 'abdicate'", refused.stderr)
        assert.is_nil(refused.stderr:find("function", 1, true))
      end
    end)
  end
end)

testing.conformance("http_lease", function()
  return { module = lease, options = { url = ("http://127.0.0.1:%d/locks"):format(port), ttl = 2, timeout = 20 }, expires = true }
end)

testing.conformance("http_lease, with many questions in a request,", function()
  return { module = lease, options = { url = ("http://127.0.0.1:%d/locks"):format(port), ttl = 2, timeout = 20, batch_path = "/batch" },
    expires = true, numbered = true }
end)

teardown(function() server:destroy() end)

describe("the lease oracle over HTTP", function()
  local listener, answer, seen

  -- A server that says what a spec wants said.
  local function listen(options)
    seen = {}
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      local line, headers, length = connection:read "*l", {}, 0
      for header in function() return connection:read "*l" end do
        if header == "\r" then break end
        headers[#headers + 1] = header
        length = tonumber(header:lower():match "^content%-length:%s*(%d+)") or length
      end
      local body = length > 0 and connection:read(length) or ""
      seen = { line = line, headers = table.concat(headers, "\n"), body = body }
      connection:write(type(answer) == "function" and answer(connection) or answer)
      connection:close()
    end, options))
  end

  before_each(function() listen() end)
  after_each(function() listener:close() end)

  local function reply(status, body, headers)
    return ("HTTP/1.1 %d X\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s"):format(status, headers or "", #body, body)
  end

  local function candidate(options)
    local given = { name = "a/b c", node = "one", url = ("http://127.0.0.1:%d/locks/"):format(listener:port()), ttl = 6 }
    for key, value in pairs(options or {}) do given[key] = value end
    return Player.new(lease, given)
  end

  it("does not refresh together what was won together", function()
    answer = reply(200, '{"ttl":6,"epoch":7}')
    local delays = {}
    for i = 1, 12 do
      local one = candidate { name = "e" .. i }
      delays[i] = one:claim()[2]
      assert.is_true(delays[i] > 0 and delays[i] <= 2)
      assert.equal(2, one:refresh()[2])
    end
    table.sort(delays)
    assert.is_true(delays[12] - delays[1] > 0.1)
  end)

  it("asks as the contract of the API has it", function()
    answer = reply(200, '{"ttl":6,"epoch":7}')
    local verdict = candidate():claim()
    assert.same({ "granted", 6, 7 }, { verdict[1], verdict[3], verdict[4] })
    assert.is_true(verdict[2] <= 2)
    assert.equal("POST /locks/a%2Fb%20c/claim HTTP/1.1\r", seen.line)
    assert.matches('"holder":"one#', seen.body)
    assert.matches("application/json", seen.headers)
  end)

  it("reads the fields that the options name, and who holds it", function()
    answer = reply(409, '{"owner":"other","fence":9,"left":0.5}')
    local verdict = candidate({ holder_field = "owner", epoch_field = "fence", expires_field = "left" }):claim()
    assert.same({ "denied", 0.5, "other", 9 }, { verdict[1], verdict[2], verdict[3], verdict[4] })
  end)

  it("reads the fields that the options name, and not those of the usual names beside them", function()
    local one = candidate { ttl_field = "seconds", epoch_field = "fence", holder_field = "owner", expires_field = "left" }
    for _, fn in ipairs { "claim", "refresh" } do
      answer = reply(200, '{"seconds":4,"ttl":5,"fence":9,"epoch":8,"owner":"one","holder":"two"}')
      local verdict = one:call(fn)
      assert.same({ "granted", 4, 9 }, { verdict[1], verdict[3], verdict[4] })
      answer = reply(200, '{"seconds":4,"fence":9,"owner":"two","holder":"one"}')
      verdict = one:call(fn)
      assert.equal("unknown", verdict[1])
      assert.matches("another holder", verdict[2])
      answer = reply(409, '{"left":0.5,"expires_in":0.2,"fence":9,"epoch":8,"owner":"two","holder":"three"}')
      verdict = one:call(fn)
      assert.same({ "denied", 0.5, "two", 9 }, { verdict[1], verdict[2], verdict[3], verdict[4] })
    end
  end)

  it("asks where the options' paths say, with the election's name wherever they have it", function()
    local one = candidate { claim_path = "/take/{name}?for={name}", refresh_path = "/keep/{name}", release_path = "/{name}/end" }
    answer = reply(200, "{}")
    one:claim()
    assert.equal("POST /locks/take/a%2Fb%20c?for=a%2Fb%20c HTTP/1.1\r", seen.line)
    one:refresh()
    assert.equal("POST /locks/keep/a%2Fb%20c HTTP/1.1\r", seen.line)
    one:abdicate()
    assert.equal("DELETE /locks/a%2Fb%20c/end HTTP/1.1\r", seen.line)
  end)

  it("asks whether it is let in at the path of a release", function()
    answer = reply(403, "")
    local problems = lease.rights { crown_name = "a", node = "one", release_path = "/{name}/end",
      url = ("http://127.0.0.1:%d/locks"):format(listener:port()) }
    assert.matches("403", problems[1])
    assert.equal("GET /locks/a/end HTTP/1.1\r", seen.line)
  end)

  it("refuses a path that would run into the URL", function()
    for _, option in ipairs { "claim_path", "refresh_path", "release_path", "batch_path" } do
      local refused = run { "check", "--oracle", "http://127.0.0.1:1/locks?" .. option .. "=x", "run", "a", "true" }
      assert.equal(2, refused.code, refused.stderr)
      assert.matches(option .. ".*must begin with /", refused.stderr)
    end
  end)

  it("takes an empty 200 for a lease of the TTL that it was told, as from a service that keeps the time itself", function()
    answer = reply(200, "")
    local one = candidate()
    local verdict = one:claim()
    assert.same({ "granted", 6 }, { verdict[1], verdict[3] })
    verdict = one:refresh()
    assert.same({ "granted", 2, 6 }, { verdict[1], verdict[2], verdict[3] })
    answer = reply(409, "")
    assert.equal("denied", one:refresh()[1])
    answer = reply(409, '{"holder":"app@host"}')
    assert.equal("app@host", one:claim()[3])
  end)

  it("does not guess how long the lease of an empty 200 lasts", function()
    answer = reply(200, "\r\n")
    local verdict = Player.new(lease, { name = "a", node = "one", url = ("http://127.0.0.1:%d/locks"):format(listener:port()) })
      :claim()
    assert.equal("unknown", verdict[1])
    assert.matches(("http at 127.0.0.1:%d: .*set ttl"):format(listener:port()), verdict[2])
  end)

  it("honours Retry-After, and has a retry of its own", function()
    answer = reply(409, "{}", "Retry-After: 7\r\n")
    assert.equal(7, candidate():claim()[6])
    answer = reply(409, "held")
    assert.equal(1, candidate():claim()[6])
  end)

  -- What is said together, as docs/oracle-http.md has it.
  local HINTS = {
    { "the lease ends before Retry-After", { expires_in = 0.5 }, "7", { 0.5, 7 } },
    { "the lease ends after Retry-After", { expires_in = 9 }, "7", { nil, 7 } },
    { "the lease ends after `retry`", { expires_in = 9 }, nil, { nil, 1 } },
    { "the lease has ended", { expires_in = -5 }, "7", { 0, 7 } },
    { "no pause", {}, "0", { nil, 1 } },
    { "a pause that is a date", {}, "Wed, 21 Oct 2026 07:28:00 GMT", { nil, 1 } },
    { "a pause that is negative", {}, "-3", { nil, 1 } },
    { "an end that is no number", { expires_in = "soon" }, "7", { nil, 7 } },
  }
  for _, hint in ipairs(HINTS) do
    it("settles between hints: " .. hint[1], function()
      local after = hint[3] and ("Retry-After: %s\r\n"):format(hint[3])
      answer = reply(409, crown.json.encode(hint[2]), after)
      local verdict = candidate():claim()
      assert.same({ "denied", hint[4][1], hint[4][2] }, { verdict[1], verdict[2], verdict[6] })
    end)
  end

  it("keeps the highest epoch that it was told, and believes none below it before a TTL is over", function()
    local said, asked, released = { '{"epoch":9}', '{"epoch":3}', "{}" }, 0, 0
    answer = function()
      if seen.line:find "^DELETE" then
        released = released + 1
        return reply(200, "")
      end
      asked = asked + 1
      if said[asked] then return reply(409, said[asked]) end
      return reply(200, '{"ttl":2,"epoch":5}')
    end
    local epoch, before
    local election = crown.elect { name = "epochs", node = "one", oracle = { lease, ttl = 2, retry = 0.1,
      url = ("http://127.0.0.1:%d/locks"):format(listener:port()) },
      handlers = { won = function(term) epoch, before = term.epoch, { asked, released } end } }
    eventually(function() return epoch end, 20)
    assert.same({ 5, { #said + 2, 1 } }, { epoch, before }) -- given back once, and claimed once more
    election:stop()
  end)

  -- The core doubles its pauses up to eight times where there is no answer: three in a row of them are never short.
  for _, status in ipairs { 403, 429, 500, 503 } do
    it("goes on asking after `retry` where claims are answered with " .. status, function()
      local at = {}
      answer = function()
        if not seen.line:find "^DELETE" then at[#at + 1] = crown.now() end
        return reply(status, "")
      end
      local election = crown.elect { name = "refused-" .. status, node = "one",
        oracle = { lease, url = ("http://127.0.0.1:%d/locks"):format(listener:port()), ttl = 6, retry = 0.2 } }
      eventually(function() return #at >= 8 end, 30)
      election:stop()
      assert(math.min(at[8] - at[7], at[7] - at[6], at[6] - at[5]) < 0.8)
    end)
  end

  it("asks no sooner than a failure's Retry-After says, and no later than four TTLs or a minute", function()
    local at = {}
    answer = function()
      if not seen.line:find "^DELETE" then at[#at + 1] = crown.now() end
      return reply(503, "", "Retry-After: 2\r\n")
    end
    assert.same({ "store", 2 }, (function(v) return { v[3], v[4] } end)(candidate():claim()))
    at = {}
    local election = crown.elect { name = "later", node = "one",
      oracle = { lease, url = ("http://127.0.0.1:%d/locks"):format(listener:port()), ttl = 6, retry = 0.2 } }
    eventually(function() return #at >= 2 end, 30)
    assert(at[2] - at[1] >= 2)
    assert.equal(60, (select(4, election:bound("claim", "unknown", "why", "store", 1e6))))
    election:stop()
  end)

  for what, body in pairs { ["has ended"] = '{"expires_in":0}', ["ended long ago"] = '{"expires_in":-1e9}',
    ["ends at once"] = '{"expires_in":0.0001}' } do
    it("does not ask without a pause where a lease that is held " .. what, function()
      local count = 0
      answer = function()
        count = count + 1
        return reply(409, body)
      end
      local election = crown.elect { name = "spin-" .. #body, node = "one",
        oracle = { lease, url = ("http://127.0.0.1:%d/locks"):format(listener:port()), ttl = 6 } }
      eventually(function() return count >= 8 end, 20) -- at first it is in a hurry
      local before, at = count, crown.now()
      crown.sleep(3)
      assert((count - before) / (crown.now() - at) <= 4, count - before .. " questions in 3 s")
      election:stop()
    end)
  end

  it("sends headers and a login", function()
    answer = reply(200, "{}")
    candidate({ headers = { ["X-Team"] = "red" }, user = "joe", password = "se:cret" }):claim()
    assert.matches("X%-Team: red", seen.headers)
    assert.matches("Authorization: Basic am9lOnNlOmNyZXQ=", seen.headers)
    candidate({ bearer = "abc" }):claim()
    assert.matches("Authorization: Bearer abc", seen.headers)
  end)

  it("takes no grant that names another holder, and one that names this node", function()
    local one = candidate()
    local others = { '"two#1"', '"one#1"', '"two"', '""', "17", "1e999", "[1]", '["one"]', "{}", "true", "false", "null" }
    for _, holder in ipairs(others) do
      answer = reply(200, ('{"ttl":6,"epoch":7,"holder":%s}'):format(holder))
      local verdict = one:claim()
      assert.equal("unknown", verdict[1], holder)
      assert.matches(("http at 127.0.0.1:%d: the lease server answered 200 and named another holder"):format(listener:port()),
        verdict[2], 1, true)
    end
    answer = function() return reply(200, ('{"ttl":6,"holder":"%s"}'):format(seen.body:match '"holder":"([^"]*)"')) end
    assert.equal("granted", one:claim()[1])
    answer = reply(200, '{"ttl":6,"holder":"one"}')
    assert.equal("granted", one:refresh()[1])
    answer = reply(200, '{"ttl":6,"holder":"two#1"}')
    assert.equal("unknown", one:refresh()[1])
  end)

  it("takes no grant whose lease has no time left, nor one whose time is no number", function()
    local one = candidate()
    for _, ttl in ipairs { "0", "0.0", "-1", '"0"', '"soon"', "null", "[6]", "true", "{}", "-1e999" } do
      answer = reply(200, ('{"ttl":%s,"epoch":7}'):format(ttl))
      for _, fn in ipairs { "claim", "refresh" } do
        local verdict = one:call(fn)
        assert.equal("unknown", verdict[1], ttl)
        assert.matches(("http at 127.0.0.1:%d: the lease server answered 200"):format(listener:port()), verdict[2], 1, true)
        assert.matches("seconds above 0", verdict[2])
      end
    end
  end)

  it("counts a lease that is longer than it asked for as what it asked for, and a shorter one as that", function()
    local one = candidate()
    for ttl, counts in pairs { ["1e300"] = 6, ["1e999"] = 6, ["60"] = 6, ["6"] = 6, ["4"] = 4, ["0.9"] = 0.9, ['"4"'] = 4 } do
      answer = reply(200, ('{"ttl":%s,"epoch":7}'):format(ttl))
      for _, fn in ipairs { "claim", "refresh" } do
        local verdict = one:call(fn)
        assert.same({ "granted", counts }, { verdict[1], verdict[3] }, ttl)
      end
    end
  end)

  for title, case in pairs {
    ["a list"] = { reply(200, "[1,2]"), "no JSON object" },
    ["an empty list"] = { reply(200, " []"), "no JSON object" },
    ["a list of grants"] = { reply(200, '[{"ttl":6,"epoch":7}]'), "no JSON object" },
    ["a number"] = { reply(200, "5"), "no JSON object" },
    ["a text"] = { reply(200, '"granted"'), "no JSON object" },
    ["a truth"] = { reply(200, "true"), "no JSON object" },
    ["null"] = { reply(200, "null"), "no JSON object" },
    ["an object and more"] = { reply(200, "{} {}"), "no JSON object" },
    ["HTML"] = { reply(200, "<html>welcome</html>"), "no JSON object" },
    ["an error"] = { reply(500, "{}"), "answered 500: it is overloaded, or fails; it is asked again$" },
    ["too many questions"] = { reply(429, ""), "answered 429: it is overloaded, or fails; it is asked again$" },
    ["a user without the right"] = { reply(403, ""), "answered 403: this user may not; see the service's own rules$" },
    ["a redirect"] = { reply(302, "", "Location: http://elsewhere/\r\n"),
      "answered 302: redirects are not followed; it names http://elsewhere/$" },
    ["a wrong login"] = { reply(401, ""), "answered 401" },
    ["half an answer"] = { "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "127.0.0.1" },
    ["something else"] = { "+OK\r\n", "127.0.0.1" },
    ["too much"] = { "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" .. ("x"):rep(200000), "more than 65536 bytes" },
  } do
    it("counts " .. title .. " as not known", function()
      answer = case[1]
      local verdict = candidate():claim()
      assert.equal("unknown", verdict[1])
      assert.matches(case[2], verdict[2])
    end)
  end

  it("checks the server's certificate", function()
    local dir = authority()
    listener:close()
    listen { tls = { cert = dir .. "/s.crt", key = dir .. "/s.key" } }
    answer = reply(200, '{"epoch":3}')
    local at = ("https://127.0.0.1:%d/locks"):format(listener:port())
    assert.equal("granted", candidate({ url = at, ca = dir .. "/ca.crt" }):claim()[1])
    for _, ca in ipairs { dir .. "/other.crt", "/etc/ssl/certs/ca-certificates.crt" } do
      local verdict = candidate({ url = at, ca = ca }):claim()
      assert.equal("unknown", verdict[1])
      assert.matches("certificate", verdict[2])
    end
  end)

  it("has a few connections, however many elections there are", function()
    local open, most, answered = {}, 0, 0
    answer = function(connection)
      local count = 0
      if not (seen.line or ""):find "many%-" then return "" end -- a connection of a test before, which ends
      open[connection] = true
      for _ in pairs(open) do count = count + 1 end
      most = math.max(most, count)
      crown.sleep(0.02)
      open[connection] = nil
      return reply(200, '{"epoch":1}')
    end
    for i = 1, 60 do
      local one = candidate { name = "many-" .. i, timeout = 20 }
      crown.spawn(function() if one:claim()[1] == "granted" then answered = answered + 1 end end)
    end
    eventually(function() return answered == 60 end, 30)
    assert.is_true(most <= 8, most .. " at once")
  end)

  it("asks for many in one request where the server takes that, and tells each what is its own", function()
    local requests, told = 0, {}
    answer = function()
      requests = requests + 1
      local answers = {}
      for i, one in ipairs(crown.json.decode(seen.body).asked) do
        local number = tonumber(one.name:match "%d+")
        answers[i] = number % 2 == 0 and { status = 200, epoch = number }
          or { status = 409, holder = "n" .. number, retry_after = number }
      end
      return reply(200, crown.json.encode { answers = answers })
    end
    for i = 1, 150 do
      local one = candidate { name = "lot-" .. i, timeout = 20, batch_path = "/batch" }
      crown.spawn(function() told[i] = one:claim() end)
    end
    eventually(function() return #told == 150 end, 30)
    assert.equal("POST /locks/batch HTTP/1.1\r", seen.line)
    assert(requests <= 10, requests .. " requests for 150 questions")
    for i = 1, 150 do
      if i % 2 == 0 then assert.same({ "granted", i }, { told[i][1], told[i][4] })
      else assert.same({ "denied", "n" .. i, i }, { told[i][1], told[i][3], told[i][6] }) end
    end
  end)

  it("knows nothing of what an answer to many leaves out, nor where there is none", function()
    answer = reply(200, '{"answers":[{"status":200,"epoch":4}]}')
    local told = {}
    for i = 1, 2 do
      local one = candidate { name = "less-" .. i, timeout = 20, batch_path = "/batch" }
      crown.spawn(function() told[i] = one:claim() end)
    end
    eventually(function() return told[1] and told[2] end, 30)
    assert.same({ "granted", "unknown" }, { told[1][1], told[2][1] })
    local at = ("http at 127.0.0.1:%d: "):format(listener:port())
    assert.equal(at .. "it sent fewer answers than questions: batch_path has to answer each question, in order", told[2][2])
    for what, one in pairs { ["answered 404"] = reply(404, ""), ["answered 200 without a list of answers"] = reply(200, "{}") } do
      answer = one
      local verdict = candidate({ batch_path = "/batch" }):claim()
      assert.same({ "unknown", at .. "the lease server " .. what .. " to many questions at batch_path; is the path in the URL "
        .. "right, and what does the server's log say?", "store", 1 }, verdict)
    end
    answer = reply(200, '{"answers":[{"status":500}]}')
    assert.equal("unknown", candidate({ batch_path = "/batch" }):claim()[1])
  end)

  it("does not ask any more for what has waited too long", function()
    local asked = 0
    answer = function()
      asked = asked + 1
      crown.sleep(1)
      return reply(200, '{"epoch":1}')
    end
    local unknown = 0
    for i = 1, 30 do
      local one = candidate { name = "late-" .. i, timeout = 0.3 }
      crown.spawn(function() if one:claim()[1] == "unknown" then unknown = unknown + 1 end end)
    end
    eventually(function() return unknown == 30 end, 20)
    assert.is_true(asked < 30)
  end)

  it("counts silence as not known, within the time-out, and tells no password", function()
    answer = function() crown.sleep(30) return "" end
    local at = crown.now()
    local url = ("http://joe:secret@127.0.0.1:%d/locks"):format(listener:port())
    local verdict = candidate({ timeout = 0.3, url = url }):claim()
    assert.equal("unknown", verdict[1])
    assert.is_true(crown.now() - at < 15)
    assert.is_nil(verdict[2]:find "secret")
  end)
end)
