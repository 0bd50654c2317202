-- --http: what a monitor, a load balancer and a person at a browser see.
local Browser = require "support.browser"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("the HTTP endpoint", function()
  local one, oracle, port

  local function start(name)
    oracle = "file:" .. tempdir()
    one = Candidate.start { args = { "--log-level", "info", "run", "--oracle", oracle, "--http", "127.0.0.1:0",
      name, "sleep", "60" }, node = "node<1>", log = tempdir() .. "/log" }
    port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end)
    eventually(function() return #one:pids "child" == 1 end)
  end

  local function get(path) return http.ask(port, "GET " .. path) end

  after_each(function() one:destroy() end)

  it("tells Prometheus what is led, and what has happened", function()
    start "web"
    local reply = get "/metrics"
    assert.equal(200, reply.status)
    assert.matches("Content%-Type: text/plain; version=0.0.4", reply.headers)
    assert.matches('crown_leader{election="web",oracle="file"} 1\n', reply.body)
    assert.matches('crown_epoch{election="web",oracle="file"} 1\n', reply.body)
    assert.matches('crown_events_total{event="leadership.claimed"} 1\n', reply.body)
    for line in reply.body:gmatch "[^\n]+" do
      assert.is_truthy(line:match "^# HELP [%w_]+ ." or line:match "^# TYPE [%w_]+ %l+$"
        or line:match '^[%w_]+{[%w_]+="[^"]*",?[^}]*} [%d.e+-]+$', line)
    end
  end)

  local function start_two()
    local app = tempdir() .. "/two.lua"
    local file = assert(io.open(app, "w"))
    file:write [[
      local crown = require "crown"
      for _, node in ipairs { "w1", "w2" } do crown.elect { name = "web", node = node } end]]
    file:close()
    one = Candidate.start { args = { "--log-level", "info", "--oracle", "memory:", "--http", "127.0.0.1:0", app }, node = "one",
      log = tempdir() .. "/log" }
    port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
  end

  it("tells Prometheus of several candidates of one election which is which", function()
    start_two()
    local body, seen = get("/metrics").body, {}
    for series in body:gmatch "\n([%w_]+%b{}) " do
      assert.is_nil(seen[series], series)
      seen[series] = true
    end
    assert.is_true(seen['crown_epoch{election="web",oracle="memory",node="w1"}'])
    assert.is_true(seen['crown_epoch{election="web",oracle="memory",node="w2"}'])
  end)

  it("tells Prometheus how the connections to stores are", function()
    local store = Redis.start()
    one = Candidate.start { args = { "--log-level", "info", "run", "--oracle", store.url .. "?ttl=5", "--http", "127.0.0.1:0",
      "web", "sleep", "60" }, node = "one", log = tempdir() .. "/log" }
    port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end)
    local labels = ('{connection="1",store="redis",server="127.0.0.1:%d"}'):format(store.port)
    local function value(name)
      local body = get("/metrics").body
      local _, last = body:find(name .. labels .. " ", 1, true)
      return last and tonumber(body:match("^[%d.]+", last + 1))
    end
    eventually(function() return value "crown_store_up" == 1 end, 30)
    assert.equal(0, value "crown_store_reconnects_total")
    assert.is_true(value "crown_store_last_answer_seconds" >= 0 and value "crown_store_state_seconds" >= 0)
    store:destroy()
    eventually(function() return value "crown_store_up" == 0 and value "crown_store_reconnects_total" == 1 end, 30)
  end)

  it("tells Prometheus how long oracles took, what happened to each election, and whether its store answers", function()
    start "web"
    local body = get("/metrics").body
    assert.matches('crown_oracle_call_seconds_bucket{function="claim",le="%+Inf"} (%d+)\n', body)
    local buckets = 0
    for count in body:gmatch 'crown_oracle_call_seconds_bucket{function="claim",le="[^"]+"} (%d+)\n' do
      assert.is_true(tonumber(count) >= buckets)
      buckets = tonumber(count)
    end
    assert.equal(buckets, tonumber(body:match 'crown_oracle_call_seconds_count{function="claim"} (%d+)'))
    assert.matches('crown_election_events_total{election="web",event="leadership.claimed"} 1\n', body)
    assert.matches('crown_election_store_reachable{election="web",oracle="file"} 1\n', body)
    assert.matches('crown_unfenced{election="web",oracle="file"} 0\n', body)
    assert.matches('crown_runtime_restarts_total{node="node<1>"} 0\n', body)
    assert.matches('crown_build_info{version="[^"]+",lua="LuaJIT [^"]+"} 1\n', body)
    if os.execute "command -v promtool > /dev/null" == 0 then
      local result = crown.exec({ "promtool", "check", "metrics" }, { stdin = body })
      assert.equal(0, result.code, result.stdout .. result.stderr)
    end
  end)

  it("counts a command that works on without leading, until it leads again", function()
    oracle = "file:" .. tempdir()
    one = Candidate.start { args = { "--log-level", "info", "run", "--oracle", oracle, "--http", "127.0.0.1:0", "--signal", "web",
      "sleep", "60" }, node = "one", log = tempdir() .. "/log" }
    port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
    eventually(function() return #one:pids "child" == 1 end, 20)
    local other = Candidate.start { args = { "run", "--oracle", oracle, "web", "sleep", "60" }, node = "two",
      log = tempdir() .. "/log" }
    finally(function() other:destroy() end)
    other:follows()
    run { "evict", "--oracle", oracle, "--force", "web" }
    eventually(function() return get("/metrics").body:find('crown_unfenced{election="web",oracle="file"} 1\n', 1, true) end, 20)
    other:signal "TERM"
    eventually(function() return get("/metrics").body:find('crown_unfenced{election="web",oracle="file"} 0\n', 1, true) end, 20)
  end)

  it("is not well with ?store=1 when the store has been away for longer than a lease", function()
    one = Candidate.start { args = { "--log-level", "info", "run", "--quiet", "--oracle", "redis://127.0.0.1:1?ttl=1.5", "--http",
      "127.0.0.1:0", "web", "sleep", "60" }, node = "one", log = tempdir() .. "/log" }
    port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
    eventually(function() return get("/healthz?store=1").status == 503 end, 20)
    assert.matches("^'web': its store has given no answer for %d+ s: %S", get("/healthz?store=1").body)
    assert.equal(200, get("/healthz").status)
  end)

  it("answers for one election with 200 or 503, and for none of ours with 404", function()
    start "web"
    assert.equal(200, get("/healthz").status)
    assert.equal(200, get("/leader/web").status)
    assert.equal("node<1>", crown.json.decode(get("/leader/web").body).leader)
    assert.equal(404, get("/leader/other").status)
    run { "evict", "--oracle", oracle, "--force", "--wait", "0", "web" }
    eventually(function() return get("/leader/web").status == 503 end, 3)
    eventually(function() return get("/leader/web").status == 200 end, 5)
  end)

  it("lists elections and changes for programs", function()
    start "web"
    local found = crown.json.decode(get("/api/elections").body)
    assert.same({ "web", "leading", 1 }, { found.elections[1].name, found.elections[1].phase, found.elections[1].epoch })
    assert.equal("leadership.claimed", found.changes[#found.changes].event)
  end)

  it("lists as many as asked for, and says how many there are", function()
    start "web"
    local found = crown.json.decode(get("/api/elections/0").body)
    assert.same({ {}, 1 }, { found.elections, found.total })
    assert.equal(1, #crown.json.decode(get("/api/elections/5").body).elections)
    assert.equal(404, get("/api/elections/x").status)
  end)

  it("tells what has changed since it was last asked, and no more", function()
    start "web"
    local function ask(since)
      return crown.json.decode(get("/api/elections" .. (since and "?since=" .. since or "")).body)
    end
    local all = ask()
    assert.same({ 1, nil }, { #all.elections, all.delta })
    local quiet = eventually(function() -- it has been started
      all = ask(all.stamp)
      return all.delta and #all.elections == 0 and all
    end)
    assert.same({ true, 1 }, { quiet.delta, quiet.total })
    run { "evict", "--oracle", oracle, "--force", "--wait", "0", "web" }
    local told = eventually(function()
      local found = ask(quiet.stamp)
      return found.elections[1] and found.elections[1].epoch == 2 and found
    end)
    assert.same({ true, "web" }, { told.delta, told.elections[1].name })
    for _, foreign in ipairs { "", "x", "1.2.3", quiet.stamp .. "0000000", quiet.stamp .. "x", quiet.stamp:gsub("%d+$", "1e9") } do
      assert.same({ 1 }, { #ask(foreign).elections, ask(foreign).delta }, foreign)
    end
  end)

  it("escapes names, and lets nothing from outside in", function()
    start "web"
    local page = get "/"
    assert.matches("Elections on node&lt;1&gt;", page.body)
    assert.is_nil(page.body:find "node<1>")
    assert.matches("Content%-Security%-Policy: default%-src 'none'", page.headers)
    assert.is_nil(page.body:find "https?://")
    assert.is_nil(get("/leader/<script>").body:find "<script>")
  end)

  it("takes GET alone, and bounds what it reads", function()
    start "web"
    for _, method in ipairs { "POST", "PUT", "DELETE", "OPTIONS" } do
      assert.equal(405, http.ask(port, method .. " /", "{}").status)
    end
    assert.equal(200, http.ask(port, "HEAD /").status)
    local connection = assert(crown.tcp.connect("127.0.0.1", port))
    connection:write("GET /" .. ("x"):rep(100000) .. " HTTP/1.1\r\n\r\n")
    local status = connection:read "*l"
    assert.matches("HTTP/1.1 4%d%d", status or "HTTP/1.1 400 cut off")
    connection:close()
    assert.equal(404, get("/etc/passwd").status)
    assert.equal(200, get("/healthz").status)
  end)

  it("stays off unless asked for, and says what is wrong with an address", function()
    start "web"
    for _, where in ipairs { "nowhere", "1.2.3:x", "127.0.0.1:99999", "300.1.1.1:80" } do
      local result = run { "--http", where, "run", "x", "true" }
      assert.equal(2, result.code)
      assert.matches("^crown%-lua: %-%-http[^:]*: ", result.stderr)
    end
    local taken = run { "--http", "127.0.0.1:" .. port, "run", "x", "true" }
    assert.equal(2, taken.code)
    assert.matches("Address already in use", taken.stderr)
  end)

  describe("in a browser", function()
    local browser
    if not Browser.installed() then return end
    setup(function() browser = Browser.start() end)
    teardown(function() browser:destroy() end)

    local function text() return browser:run "return document.body.innerText" end

    it("shows who leads, live, without reloading", function()
      start "web"
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return text():find "live" end)
      assert.matches("web%s+leading%s+node<1>%s+1", text())
      browser:run "window.stays = true"
      run { "evict", "--oracle", oracle, "--force", "web" }
      eventually(function() return text():find "web · leadership: lost · leader node<1> · epoch 1 · evicted" end)
      eventually(function() return text():find "web%s+leading%s+node<1>%s+2" end)
      assert.is_true(browser:run "return window.stays")
      assert.equal("rgb(26, 127, 55)", browser:run "return getComputedStyle(document.querySelector('.badge')).color")
    end)

    it("says when the runtime does not answer any more", function()
      start "web"
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return text():find "live" end)
      one:signal "TERM"
      one:wait(10)
      eventually(function() return text():find "no answer since" end)
    end)

    it("loads nothing from anywhere else, and logs no error", function()
      start "web"
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return text():find "live" end)
      assert.is_true(browser:run [[return performance.getEntriesByType("resource")
        .every(one => one.name.startsWith(location.origin))]])
    end)

    it("filters, and says in its title how many are led", function()
      start "web"
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return text():find "live" end, 20) -- what has not been drawn yet is not filtered either
      eventually(function() return browser:run "return document.title" == "1 of 1 led here – node<1>" end, 20)
      local function rows(wanted)
        return browser:run(([[const f = document.querySelector("#filter"); f.value = "%s";
          f.dispatchEvent(new Event("input")); return document.querySelectorAll("tbody tr").length]]):format(wanted))
      end
      assert.same({ 1, 0, 1 }, { rows "WE", rows "other", rows "" })
    end)

    it("shows each of several candidates of one election, with its node", function()
      start_two()
      assert.matches('class="name"><a href="history/web">web</a> <span class="soft">w1</span></td>', get("/").body)
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return text():find "live" end, 20)
      eventually(function() return text():find "web w1%s+leading" or text():find "web w2%s+leading" end, 20)
      assert.equal(2, browser:run "return document.querySelectorAll('tbody tr').length")
    end)

    it("shows the jobs of a crontab, and goes on doing so", function()
      local path = write_file(tempdir() .. "/jobs", "CRON_TZ=UTC\n#: name=leap\n0 0 29 2 * true\n")
      local redis = Redis.start()
      finally(function() redis:destroy() end)
      one = Candidate.start { args = { "cron", "--oracle", redis.url, "--http", "127.0.0.1:0", path }, node = "one",
        log = tempdir() .. "/log" }
      port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      local cell = "return document.querySelector('#jobs tbody td:first-child').textContent"
      eventually(function() return text():find "live" and browser:run(cell) == "leap" end, 20)
      browser:run "document.querySelector('#jobs tbody').replaceChildren()"
      eventually(function() return browser:run "return document.querySelectorAll('#jobs tbody tr').length" == 1 end, 20)
      assert.matches("02%-29 00:00:00 %+0000", text())
    end)

    it("alarms in words and colour when a store is away", function()
      one = Candidate.start { args = { "--log-level", "info", "run", "--quiet", "--oracle", "redis://127.0.0.1:1", "--http",
        "127.0.0.1:0", "web", "sleep", "60" }, node = "one", log = tempdir() .. "/log" }
      port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
      browser:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return text():find "web: the store gives no answer" end, 20)
      assert.equal("bad", browser:run "return document.querySelector('#alarms li').className")
      assert.equal("⚠ 0 of 1 led here – one", browser:run "return document.title")
      assert.matches("redis: no answer for", text())
      local epoch = [[(document.querySelector("td.epoch").textContent)]]
      assert.equal("–", browser:run("return " .. epoch))
      assert.matches('class="epoch none">–<', http.ask(port, "GET /").body)
    end)

    it("fits a phone", function()
      start "web"
      local phone = Browser.start { "--window-size=390,800" }
      phone:visit(("http://127.0.0.1:%d/"):format(port))
      eventually(function() return phone:run "return document.body.innerText.includes('live')" end)
      local fits = phone:run "return document.documentElement.scrollWidth <= window.innerWidth"
      phone:destroy()
      assert.is_true(fits)
    end)
  end)

  it("is a plain table where no script runs", function()
    start "web"
    assert.matches('<td data%-label="Election" class="name"><a href="history/web">web</a></td>'
      .. '.-<span class="badge leading">leading</span></td>', get("/").body)
    assert.matches('<li class="good">All is well: 1 of 1 led here.</li>', get("/").body)
  end)
end)
