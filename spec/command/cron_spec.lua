-- crown-lua cron --check: what a crontab says, and what is wrong with it.
local json = require "crown.text.json"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("crown-lua cron --check", function()
  local path

  before_each(function() path = tempdir() .. "/jobs" end)

  local function check(text, ...)
    write_file(path, text)
    return run({ "cron", "--check", path, ... }, { env = { TZ = "Asia/Tokyo" } })
  end

  it("shows each job with its next five times by the clocks of its zone", function()
    local result = check "CRON_TZ=Australia/Adelaide\n#: name=leap\n30 12 29 2 * /usr/bin/leap --year\n"
    assert.same({ 0, "" }, { result.code, result.stderr })
    local title, times = result.stdout:match "^(leap %(line 3%): 30 12 29 2 %*, Australia/Adelaide\n  runs   /usr/bin/leap %-%-year\n)(.*)$"
    assert.is_string(title)
    local count = 0
    for line in times:gmatch "[^\n]+" do
      if line:find "UTC" then
        count = count + 1
        assert.matches("^  n?e?x?t? +%a+day 29 February %d%d%d%d 12:30 %(UTC%+10:30%)$", line)
      end
    end
    assert.equal(5, count)
    assert.equal(path .. ": 1 job, nothing wrong", times:match "([^\n]+)\n$")
  end)

  it("says where each mistake is and what was meant, and ends with 2", function()
    local result = check "CRON_TZ=UTC\n0 25 * * * job\n  #: retris=3\n@dayly other\n0 3 * * * fine\n"
    assert.equal(2, result.code)
    local said = {}
    for line in result.stderr:gmatch "[^\n]+" do said[#said + 1] = line:sub(#("crown-lua: cron: " .. path .. ":") + 1) end
    assert.same({ "2:3: hour 25 is not between 0 and 23", "3:6: there is no option 'retris' (did you mean 'retries'?)",
      "4:1: there is no '@dayly' (did you mean '@daily'?)" }, said)
    assert.matches("\nfine %(line 5%)", "\n" .. result.stdout)
    assert.matches(": 1 job, not as it should be\n$", result.stdout)
  end)

  it("names each mistake of a line of options, and the column of a user", function()
    local result = check "CRON_TZ=UTC\n#: retries=-1 overlap=yes timeout=1s timeout=2s\n0 3 * * * root true\n1 3 * * * root-backup now\n"
    assert.equal(2, result.code)
    local said = {}
    for line in result.stderr:gmatch "[^\n]+" do said[#said + 1] = line:match "^crown%-lua: cron: [^:]*:(%d+:%d+: .*)$" end
    assert.same({ "2:4: retries=-1 is no number from 0 to 100",
      "2:15: overlap: a job never runs beside itself here; two jobs with two names do", "2:38: timeout is given twice",
      "3:11: 'root' is a user of this host, and no program: there is no column for the user here, unlike in /etc/cron.d" }, said)
  end)

  it("refuses a file without a job, with a mark that nobody sees, and with a variable of crown-lua's own", function()
    local said = {}
    for i, text in ipairs { "# later\n", "\239\187\191CRON_TZ=UTC\n0 3 * * * job\n", "CRON_TZ=UTC\nCROWN_SLOT_TIME=1\n0 3 * * * job\n" } do
      local result = check(text)
      assert.equal(2, result.code)
      said[i] = result.stderr:match "^crown%-lua: cron: [^:]*:(%d+:%d+: [^\n]*)\n$"
    end
    assert.same({ "1:1: the file has no job",
      "1:1: the file begins with a byte order mark, which cannot be seen: save it as UTF-8 without one",
      "2:1: CROWN_SLOT_TIME is crown-lua's to set: take the line out" }, said)
  end)

  it("warns of TZ, which is not CRON_TZ", function()
    local result = check "TZ=Europe/Berlin\n0 3 * * * job\n"
    assert.equal(0, result.code)
    assert.matches("line 2: TZ is for the command alone: when it is due goes by CRON_TZ %(here Asia/Tokyo%)", result.stderr)
  end)

  it("warns where the zone of each host counts", function()
    local result = check "0 3 * * * job\n"
    assert.equal(0, result.code)
    assert.matches("line 1: no CRON_TZ is above it, .* %(here Asia/Tokyo%): write CRON_TZ=Asia/Tokyo at the top", result.stderr)
    assert.matches("03:00 %(UTC%+09:00%)", result.stdout)
  end)

  it("is for programs too", function()
    local result = check("CRON_TZ=UTC\n#: timeout=1m retries=2 catch-up=each\n0 12 29 2 * job % in\n0 3 13 13 * job\n", "--json")
    assert.same({ 2, "" }, { result.code, result.stderr })
    local found = assert(json.object(result.stdout))
    local job = found.jobs[1]
    local last = job.next[#job.next]
    assert.same({ name = "job", line = 3, times = "0 12 29 2 *", zone = "UTC", command = "job", input = " in\n", timeout = 60,
      retries = 2, catch_up = "each", output = "log", next = job.next }, job)
    assert.same({ 5, "02-29 12:00" }, { #job.next, os.date("!%m-%d %H:%M", last) })
    assert.same({ { line = 4, column = 8, message = "month 13 is not between 1 and 12" } }, found.problems)
  end)

  it("says of a host's zone that it is none, and takes each way to write one", function()
    for zone, wanted in pairs { [":Asia/Tokyo"] = "Asia/Tokyo", ["/usr/share/zoneinfo/Asia/Tokyo"] = "Asia/Tokyo" } do
      local result = run({ "cron", "--check", write_file(path, "0 3 * * * job\n") }, { env = { TZ = zone } })
      assert.matches("%(here " .. wanted .. "%)", result.stderr)
    end
    local wrong = run({ "cron", "--check", path }, { env = { TZ = "Nope" } })
    assert.equal(2, wrong.code)
    assert.matches("the variable TZ: there is no time zone 'Nope' in .*; write CRON_TZ=Europe/Berlin above it", wrong.stderr)
  end)

  it("wants a file that it can read", function()
    for words, odd in pairs { ["FILE is an empty word %(is a variable not set%?%)"] = "", ["cannot be read"] = "/proc/self/mem" } do
      local result = run { "cron", "--check", odd }
      assert.equal(2, result.code)
      assert.matches(words, result.stderr)
    end
    assert.same({ 2, "crown-lua: cron: open /nowhere/jobs: No such file or directory\n" },
      (function(result) return { result.code, result.stderr } end)(run { "cron", "--check", "/nowhere/jobs" }))
    local result = run { "cron", "--check", "--json", "/nowhere/jobs" }
    assert.same({ 2, "cron: open /nowhere/jobs: No such file or directory" },
      { result.code, json.object(result.stdout).problems[1].message })
  end)
end)
