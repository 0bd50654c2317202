-- Which occurrence a host works on, as elections begin and end.
local Course = require "crown.cron.course"
local crontab = require "crown.cron.crontab"

describe("a job's course", function()
  local course, log, leads

  local hands = {
    begin = function(_, slot) log[#log + 1] = "begin " .. slot / 600 end,
    stop = function() log[#log + 1] = "stop" end,
    leads = function() return leads end,
    finish = function() log[#log + 1] = "finish" end,
  }

  local function begin(options, first, latest)
    local jobs, problems = crontab.read(("#: name=x %s\n*/10 * * * * x\n"):format(options), "UTC")
    assert.same({}, problems)
    course = Course.new(jobs[1], first * 600, latest * 600, hands)
    course:begin()
  end

  local function logged()
    local text = table.concat(log, ", ")
    log = {}
    return text
  end

  before_each(function() log, leads = {}, false end)

  it("is over when its occurrence is", function()
    begin("retries=0", 5, 5)
    assert.equal("begin 5", logged())
    course:pass(3000)
    course:ended()
    assert.equal("finish", logged())
  end)

  it("tries again what is not over", function()
    begin("retries=0", 5, 5)
    course:ended()
    assert.equal("begin 5, begin 5", logged())
  end)

  it("leaves what waits for its turn for the later one", function()
    begin("retries=0", 5, 5)
    course:due(3600)
    assert.equal("begin 5, stop", logged())
    course:ended()
    assert.equal("begin 6", logged())
  end)

  it("lets what runs here end first, and runs the last one of those that came due meanwhile", function()
    begin("retries=0", 5, 5)
    leads = true
    course:due(3600)
    course:due(4200)
    course:pass(3000)
    course:ended()
    assert.equal("begin 5, begin 7", logged())
  end)

  it("runs each of them where it is told to", function()
    begin("catch-up=each", 3, 5)
    course:due(3600)
    for slot = 3, 6 do
      assert.equal("begin " .. slot, logged())
      course:pass(slot * 600)
      course:ended()
    end
    assert.equal("finish", logged())
  end)

  it("skips those that others have been through", function()
    begin("catch-up=each", 3, 5)
    course:pass(4 * 600)
    course:ended()
    assert.equal("begin 3, begin 5", logged())
    course:pass(9 * 600)
    course:ended()
    assert.equal("finish", logged())
  end)

  it("does not go back to an occurrence that is over", function()
    begin("retries=0", 5, 5)
    course:pass(3000)
    course:due(2400)
    course:ended()
    assert.equal("begin 5, stop, finish", logged())
  end)
end)
