-- crown-lua cron on three hosts: three processes, each with a wall clock of its own, on real stores.
local Candidate = require "support.candidate"
local eventually = require "crown.testing.eventually"
local http = require "support.http"
local json = require "crown.text.json"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local WrongClock = require "support.wrong_clock"
local write_file = require "support.write_file"

local SOON, TTL = 40, 3 -- seconds
local MINUTE = 60

-- How far a clock is ahead that shows so many seconds before the next full minute, and is set forward to that.
local function before_the_minute(seconds, ahead)
  ahead = ahead or 0
  return ahead + (MINUTE - seconds - os.time() - ahead) % MINUTE
end

describe("crown-lua cron on three hosts", function()
  local stores = {}
  local dir, path, hosts, serial = nil, nil, nil, 0

  setup(function()
    local redis, postgres = Redis.start(), Postgres.start()
    stores.redis = { server = redis, url = redis.url .. "?trust_empty=true&amnesia_wait=0&ttl=" .. TTL }
    stores.postgres = { server = postgres, url = postgres.url .. "?trust_empty=true&amnesia_wait=0&ttl=" .. TTL }
  end)
  teardown(function()
    for _, store in pairs(stores) do store.server:destroy() end
  end)

  before_each(function()
    serial, dir, hosts = serial + 1, tempdir(), {}
    path = dir .. "/jobs"
  end)
  after_each(function()
    for _, one in pairs(hosts) do one:destroy() end
  end)

  -- A job writes down when it was due, where it ran, and its epoch; `more` is what it does then.
  local function crontab(options, more)
    write_file(path, ("CRON_TZ=UTC\n#: name=job-%d %s\n* * * * * echo $CROWN_SLOT_TIME $CROWN_NODE $CROWN_EPOCH >> '%s/ran'; %s\n")
      :format(serial, options, dir, more or ""))
  end

  local function start(node, clock, store, ...)
    local log = ("%s/%s.log"):format(dir, node)
    local env = clock:environment()
    env.CROWN_DIRECTORY, env.CROWN_LOG_FILTER = tempdir(), "leadership.rejected=debug"
    local one = Candidate.start { args = { "cron", "--oracle", stores[store or "redis"].url, "--http",
      "127.0.0.1:0", path, ... }, node = node, log = log, env = env }
    one.clock = clock
    hosts[node] = one
    return one
  end

  local function says(one, pattern)
    local fine = pcall(eventually, function() return one:output():find(pattern) end, SOON)
    assert(fine, one:output())
  end

  local function new_clock() return WrongClock.new(before_the_minute(MINUTE - 1)) end

  -- All of them wait before any of their clocks comes to the minute. `seconds` says by node how long before that it is then.
  local function come_near(seconds)
    for node in pairs(seconds) do says(hosts[node], "jobs are read") end
    for node, left in pairs(seconds) do
      local clock = hosts[node].clock
      clock:set(before_the_minute(left, clock.seconds))
    end
  end

  local function start_all(seconds, store)
    local by_node = {}
    for i = 1, #seconds do
      by_node["host" .. i] = seconds[i]
      start("host" .. i, new_clock(), store)
    end
    come_near(by_node)
    return hosts.host1
  end

  -- Each run: when it was due, where, and the epoch.
  local function ran()
    local found = {}
    for slot, node, epoch in (read_file(dir .. "/ran") or ""):gmatch "(%d+) (%S+) (%d+)\n" do
      found[#found + 1] = { slot = tonumber(slot), node = node, epoch = tonumber(epoch) }
    end
    return found
  end

  local function runs(count)
    local fine = pcall(eventually, function() return #ran() >= count end, SOON)
    local found, logs = ran(), {}
    for _, one in pairs(hosts) do logs[#logs + 1] = one:output() end
    assert.is_true(fine and #found == count, ("%d runs, not %d\n%s"):format(#found, count, table.concat(logs, "\n")))
    return found
  end

  -- Every other host has seen that it has run.
  local function all_know(found, pattern)
    for node, one in pairs(hosts) do
      if node ~= found.node then says(one, "leadership%.rejected [^\n]*" .. pattern) end
    end
  end

  for _, store in ipairs { "redis", "postgres" } do
    it("runs an occurrence once, also where the clocks are apart, and keeps what it writes, on " .. store, function()
      crontab("output=keep", "echo 'ran here'")
      start_all({ 3, 6, 9 }, store)
      local found = runs(1)[1]
      all_know(found, "ran on " .. found.node)
      assert.equal(0, found.slot % MINUTE)
      assert.equal(1, #ran())
      local function kept()
        return run({ "info", "--oracle", stores[store].url, "--output", "job-" .. serial }).stdout
      end
      eventually(function() return kept() == "ran here\n" end, SOON)
      assert.matches("the job has ended [^\n]*name=job%-%d+ slot=%d+%-%d+%-%d+T%d+:%d+:00Z took=", hosts[found.node]:output())
    end)

    it("begins it again where its host dies in the middle, on " .. store, function()
      crontab("", "[ $(wc -l < " .. dir .. "/ran) -gt 1 ] || sleep 600")
      start_all({ 3, 3, 3 }, store)
      local first = runs(1)[1]
      hosts[first.node]:hurt("KILL", "supervise", "runtime")
      hosts[first.node]:wait()
      hosts[first.node] = nil
      local second = runs(2)[2]
      assert.equal(first.slot, second.slot)
      assert.are_not.equal(first.node, second.node)
      assert.is_true(second.epoch > first.epoch)
      all_know(second, "ran on " .. second.node)
    end)
  end

  it("counts a job as failed that has its warden killed", function()
    crontab("", "kill -9 $PPID; sleep 600")
    local one = start_all { 3 }
    says(one, "the job has failed [^\n]*its warden")
    says(one, "leadership%.rejected [^\n]*failed on host1")
    assert.equal(1, #ran())
  end)

  it("tries a job that fails again, on another host first, and as often as it is told to", function()
    crontab("retries=1", "exit 7")
    start_all { 3, 3, 3 }
    local found = runs(2)
    assert.equal(found[1].slot, found[2].slot)
    assert.are_not.equal(found[1].node, found[2].node)
    all_know(found[2], "failed 2 times, last on " .. found[2].node .. "[^\n]*: exit code 7")
    assert.equal(2, #ran())
  end)

  it("tries a job again on the only host there is, ends one that takes too long, and logs what they write", function()
    write_file(path, ([[
CRON_TZ=UTC
WHO=you
#: name=fails-%d retries=1
* * * * * echo $CROWN_SLOT_TIME a 1 >> '%s/ran'; exit 7
#: name=long-%d timeout=1s
* * * * * sleep 600
#: name=says-%d
* * * * * cat; echo "to $WHO" >&2%%one%%two
]]):format(serial, dir, serial, serial))
    local one = start_all { 3 }
    says(one, "the job takes too long, and is ended name=long")
    says(one, "leadership%.rejected name=long[^\n]*failed on host1 [^\n]*: it took longer than 1 s")
    for _, line in ipairs { { "one", "stdout" }, { "two", "stdout" }, { "to you", "stderr" } } do
      says(one, ("info  %s name=says%%-%%d+ stream=%s node=host1 slot=%%d+%%-%%d+%%-%%d+T%%d+:%%d+:00Z\n"):format(unpack(line)))
    end
    says(one, "leadership%.rejected name=fails[^\n]*failed 2 times")
    runs(2)
    local listed = run { "info", "--oracle", stores.redis.url, "--jobs", "--json", ("[a-z]-%d$"):format(serial) }
    local known = {}
    for _, job in ipairs(assert(json.object(listed.stdout), listed.stderr).jobs) do known[job.name:match "^%a+"] = job end
    assert.same({ 2, 7, "host1", "* * * * *", "UTC" }, { known.fails.failed, known.fails.last.code, known.fails.last.node,
      known.fails.times, known.fails.zone })
    assert.same({ "it took longer than 1 s", 0 }, { known.long.last.error, known.says.last.code })
    assert.equal(known.says.last.slot, known.says.succeeded.slot)

    local port = one:output():match "http.listening.- port=(%d+)"
    local function metrics()
      local found = {}
      local body = http.ask(port, "GET /metrics").body
      for name, job, value in body:gmatch '\ncrown_job_([%l_]+){election="(%l+)%-%d+"} ([%d.]+)' do found[job .. " " .. name] = value end
      return found
    end
    eventually(function() return metrics()["says last_exit_code"] end, SOON)
    local told = metrics()
    assert.same({ "7", "255", "0" }, { told["fails last_exit_code"], told["long last_exit_code"], told["says last_exit_code"] })
    assert.same({ "2", "2", "2" }, { told["fails failed_runs"], told["fails runs_total"], told["fails failures_total"] })
    assert.same({ tostring(known.says.last.at), "0", "0" }, { told["says last_success_timestamp_seconds"],
      told["says overdue_seconds"], told["says failures_total"] })
    local page = http.ask(port, "GET /").body
    assert.matches('<li class="warn">fails%-%d+, long%-%d+: the job has failed<', page)
    assert.matches('<td data%-label="Ended" class="">exit code 7</td>', page)
    assert.is_nil(page:find("keeps ending by itself: ", 1, true))
    assert.equal(3, #json.object(http.ask(port, "GET /api/jobs").body).jobs)
  end)

  it("runs on the healthy host that is preferred, soon after it has lost to a lower one, which waits for it and no longer", function()
    local lines, jobs = { "CRON_TZ=UTC" }, 3
    for i = 1, jobs do
      run { "run", "--once", "--oracle", stores.redis.url, ("job-%d-%d"):format(serial, i), "--", "true" } -- now it has a record
      lines[#lines + 1] = ("#: name=job-%d-%d"):format(serial, i)
      lines[#lines + 1] = ("* * * * * echo $CROWN_SLOT_TIME $CROWN_NODE $(($(date +\\%%s) - CROWN_SLOT_TIME)) >> '%s/ran'"):format(dir)
    end
    write_file(path, table.concat(lines, "\n") .. "\n")
    local behind = 8 -- seconds, after which the lowest host has looked at its clock again, and waited
    start("low", new_clock(), nil, "--prefer=-1")
    start("high", new_clock(), nil, "--prefer", "10")
    start("sick", new_clock(), nil, "--prefer", "20", "--healthy", "exit 7")
    come_near { low = 3, high = 3 + behind, sick = 3 + behind }
    local first = runs(jobs)
    for _, one in ipairs(first) do assert.same({ "low", true }, { one.node, one.epoch >= 2 }) end -- that one: seconds
    says(hosts.low, "leadership%.rejected [^\n]*left to hosts first, of preference 0")
    says(hosts.high, ("leadership%.rejected [^\n]*ran on low.*"):rep(jobs))
    for _, one in pairs(hosts) do one.clock:set(one.clock.seconds + MINUTE) end
    local found = runs(2 * jobs)
    for i = jobs + 1, 2 * jobs do
      assert.same({ "high", first[1].slot + MINUTE }, { found[i].node, found[i].slot })
    end
    says(hosts.sick, "leadership%.barred [^\n]*reason=unhealthy")
  end)

  it("makes up for what all have missed as each job is told to, and ends with 0 while nothing is due", function()
    local lines = { "CRON_TZ=UTC" }
    for _, kind in ipairs { "no", "once", "each" } do
      lines[#lines + 1] = ("#: name=%s-%d catch-up=%s"):format(kind, serial, kind)
      lines[#lines + 1] = ("* * * * * echo $CROWN_SLOT_TIME %s 1 >> '%s/ran'"):format(kind, dir)
    end
    write_file(path, table.concat(lines, "\n") .. "\n")
    local one = start_all { 3 }
    local clock = one.clock
    local first = runs(3)[1].slot
    says(one, ("the job has ended.*"):rep(3))
    one:signal "TERM"
    assert.equal(0, one:wait(SOON))
    clock:set(clock.seconds + 3 * MINUTE)
    one = start("host1", clock)
    says(one, "jobs are read")
    local made_up = {}
    for i, found in ipairs(runs(7)) do
      if i > 3 then made_up[#made_up + 1] = ("%s %d"):format(found.node, (found.slot - first) / MINUTE) end
    end
    table.sort(made_up)
    assert.same({ "each 1", "each 2", "each 3", "once 3" }, made_up)
  end)

  it("leaves out what is due while it is paused, but for what is to be made up for", function()
    local lines = { "CRON_TZ=UTC" }
    for _, kind in ipairs { "no", "once" } do
      lines[#lines + 1] = ("#: name=%s-%d catch-up=%s"):format(kind, serial, kind)
      lines[#lines + 1] = ("* * * * * echo $CROWN_SLOT_TIME %s 1 >> '%s/ran'"):format(kind, dir)
    end
    write_file(path, table.concat(lines, "\n") .. "\n")
    local function order(verb)
      for _, kind in ipairs { "no", "once" } do
        local done = run { verb, "--oracle", stores.redis.url, ("%s-%d"):format(kind, serial) }
        assert.equal(0, done.code, done.stderr)
      end
    end
    local one = start_all { 3 }
    local clock = one.clock
    local first = runs(2)[1].slot
    says(one, ("the job has ended.*"):rep(2))
    order "pause"
    clock:set(clock.seconds + MINUTE)
    says(one, "the job is left out, as it is paused [^\n]*name=no%-")
    says(one, "leadership%.barred name=once%-[^\n]*paused since")
    order "resume"
    assert.same({ "once", first + MINUTE }, { runs(3)[3].node, ran()[3].slot })
    clock:set(clock.seconds + MINUTE)
    local last = {}
    for i, found in ipairs(runs(5)) do
      if i > 3 then last[found.node] = (found.slot - first) / MINUTE end
    end
    assert.same({ no = 2, once = 2 }, last)
  end)

  it("runs nothing twice where a clock is set back, and once what a clock leaps over", function()
    crontab ""
    local one = start_all { 3 }
    local clock = one.clock
    local first = runs(1)[1].slot
    says(one, "the job has ended")
    clock:set(first - os.time() - 1) -- that minute comes again in a second
    eventually(function() return os.time() + clock.seconds > first end, SOON)
    clock:set(clock.seconds + 57)
    assert.equal(first + MINUTE, runs(2)[2].slot)
    clock:set(clock.seconds + 3 * MINUTE)
    assert.equal(first + 4 * MINUTE, runs(3)[3].slot)
    says(one, ("the job has ended.*"):rep(3))
  end)

  it("does not run again on a host whose clock is behind, and that comes later", function()
    crontab ""
    start_all { 3 }
    runs(1)
    says(hosts.host1, "the job has ended")
    start("host2", WrongClock.new(before_the_minute(3) - 10 * MINUTE))
    says(hosts.host2, "leadership%.rejected [^\n]*ran on host1")
    assert.equal(1, #ran())
  end)
end)
