-- A crontab is read as crontab(5) says it, and each mistake has its place and a next step.
local crontab = require "crown.cron.crontab"

local function only(text)
  local jobs, problems = crontab.read(text, "UTC")
  assert.same({}, problems)
  assert.equal(1, #jobs)
  return jobs[1]
end

local function refused(text)
  local _, problems = crontab.read(text, "UTC")
  assert.equal(1, #problems)
  return ("%d:%d: %s"):format(problems[1].line, problems[1].column, problems[1].message)
end

describe("a crontab", function()
  it("has jobs, each with its times, its command and a name", function()
    local job = only "# every night\n\n  15 3 * * *   /usr/local/bin/backup --all  \n"
    assert.equal("backup", job.name)
    assert.equal("/usr/local/bin/backup --all", job.command)
    assert.equal("15 3 * * *", job.times)
    assert.equal(3, job.line)
    assert.equal("UTC", job.zone)
    assert.equal(0, job.retries)
    assert.equal("no", job.catch_up)
    assert.is_nil(job.input)
    assert.equal("report", only("@daily report now").name)
  end)

  it("has options in the line before a job, for that job alone", function()
    local jobs, problems = crontab.read("#: name=nightly timeout=1h30m retries=3 overlap=no catch-up=1\n0 3 * * * ./backup\n"
      .. "0 4 * * * ./other\n", "UTC")
    assert.same({}, problems)
    assert.same({ "nightly", 5400, 3, "once" }, { jobs[1].name, jobs[1].timeout, jobs[1].retries, jobs[1].catch_up })
    assert.same({ "other", nil, 0, "no" }, { jobs[2].name, jobs[2].timeout, jobs[2].retries, jobs[2].catch_up })
  end)

  it("gives each job the environment that stands above it", function()
    local jobs, problems = crontab.read('A=1\n0 0 * * * first\nA = "two words"\nB=\'\'\n0 0 * * * second\n', "UTC")
    assert.same({}, problems)
    assert.same({ A = "1" }, jobs[1].environment)
    assert.same({ A = "two words", B = "" }, jobs[2].environment)
  end)

  it("goes by the clocks of CRON_TZ from there on", function()
    local jobs, problems = crontab.read("0 12 * * * first\nCRON_TZ=Asia/Tokyo\n0 12 * * * second\n", "UTC")
    assert.same({}, problems)
    assert.equal(43200, jobs[1].schedule:next(0))
    assert.equal(43200 - 9 * 3600, jobs[2].schedule:next(0))
    assert.equal("Asia/Tokyo", jobs[2].zone)
  end)

  it("takes a percent sign for the beginning of the input, and a further one for a new line", function()
    local job = only "0 0 * * * mail -s 100\\% ann%Hello%Bye"
    assert.equal("mail -s 100% ann", job.command)
    assert.equal("Hello\nBye\n", job.input)
  end)

  it("takes lines that end as on Windows, and a last one without an end", function()
    assert.equal("job", only("0 0 * * * job\r\n").command)
    assert.equal("job", only("0 0 * * * job").command)
  end)

  for _, case in ipairs {
    { "0 0 * * * a/job\n0 1 * * * b/job\n", "2:11: the job in line 1 is called 'job' too: write '#: name=NAME' above one of them" },
    { "#: retris=3\n0 0 * * * job", "1:4: there is no option 'retris' (did you mean 'retries'?)" },
    { "#: retries\n0 0 * * * job", "1:4: 'retries' is no option: write NAME=VALUE" },
    { " #: retries=1 timeout=soon\n0 0 * * * job", "1:15: timeout=soon is no time span: write 90s, 10m or 2h" },
    { "#: retries=many\n0 0 * * * job", "1:4: retries=many is no number from 0 to 100" },
    { "#: catch-up=2\n0 0 * * * job", "1:4: catch-up=2 is none of no, once, each" },
    { "#: overlap=yes\n0 0 * * * job",
      "1:4: overlap: a job never runs beside itself here; two jobs with two names do" },
    { "#: name=../x\n0 0 * * * job", "1:4: name: '../x' is not possible: letters, digits, '.', '_' and '-' only, "
      .. "the first one a letter, a digit or '_'" },
    { "#: retries=1\n#: retries=2\n0 0 * * * job", "1:1: no job follows these options" },
    { "0 0 * * * job\n#: retries=1\n", "2:1: no job follows these options" },
    { "CRON_TZ=Mars/Base\n0 0 * * * job", "1:1: CRON_TZ: there is no time zone 'Mars/Base' in /usr/share/zoneinfo" },
    { "  0 25 * * * job", "1:5: hour 25 is not between 0 and 23" },
    { "0 0 * * *", "1:10: the command is missing behind the five fields" },
    { "0 0 * * * %x", "1:11: the command is missing behind the five fields" },
    { "0 0 * * * .", "1:11: this job needs a name: write '#: name=NAME' above it" },
  } do
    it("says where " .. case[1]:gsub("\n", "\\n") .. " is wrong", function()
      assert.equal(case[2], refused(case[1]))
    end)
  end

  it("has no byte NUL, which would end a candidate when the job is due", function()
    for _, line in ipairs { "* * * * * echo a\0b", "A=b\0c", "* * * * * cat%a\0b" } do
      local jobs, problems = crontab.read("CRON_TZ=UTC\n" .. line .. "\n")
      assert.same({ 0, 1, 2 }, { #jobs, #problems, problems[1].line })
      assert.matches("a byte NUL", problems[1].message)
    end
  end)
end)
