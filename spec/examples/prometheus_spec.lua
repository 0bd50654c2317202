-- The settings of docs/how-to/monitoring.md and the alerts beside them, in a real Prometheus that asks a real candidate.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local json = require "crown.text.json"
local port = require "support.port"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local ALERTS = "tools/monitoring/alerts.yml"
local with_prometheus = crown.exec({ "sh", "-c", "command -v prometheus" }).code == 0 and it or pending

describe("Prometheus with the settings of the page", function()
  local started = {}

  local function start(options)
    options.log = tempdir() .. "/log"
    local one = Candidate.start(options)
    started[#started + 1] = one
    return one
  end

  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    started = {}
  end)

  with_prometheus("reads every alert, and hears from a candidate that it leads", function()
    local metrics, own = port.free(), port.free()
    start { node = "one", args = { "run", "--http", ("127.0.0.1:%d"):format(metrics), "reports", "--", "sleep", "600" },
      env = { CROWN_ORACLE = "file:" .. tempdir() } }

    local dir = tempdir()
    local text = read_file("docs/how-to/monitoring.md"):match "\n```yaml\n(.-)\n```"
    text = text:gsub("/etc/prometheus/crown%-lua/alerts%.yml", dir .. "/alerts.yml")
      :gsub("targets: %b[]", ('targets: ["127.0.0.1:%d"]'):format(metrics))
    write_file(dir .. "/alerts.yml", read_file(ALERTS))
    write_file(dir .. "/prometheus.yml", "global: { scrape_interval: 1s, evaluation_interval: 1s }\n" .. text .. "\n")
    start { program = "/usr/bin/prometheus", args = { "--config.file=" .. dir .. "/prometheus.yml",
      "--storage.tsdb.path=" .. dir .. "/data", ("--web.listen-address=127.0.0.1:%d"):format(own) } }

    local function ask(path)
      local answer = crown.http.request { url = ("http://127.0.0.1:%d/api/v1/%s"):format(own, path), timeout = 5 }
      return answer and answer.status == 200 and json.object(answer.body).data or nil
    end
    local led = eventually(function()
      local found = ask "query?query=sum+by+(election)+(crown_leader)"
      return found and found.result[1]
    end, 30)
    assert.same({ "reports", "1" }, { led.metric.election, led.value[2] })
    local names, count = {}, select(2, read_file(ALERTS):gsub("%- alert:", ""))
    for _, group in ipairs(ask("rules").groups) do
      for _, rule in ipairs(group.rules) do
        assert.equal("", rule.lastError or "", rule.name)
        names[#names + 1] = rule.name
      end
    end
    assert.equal(count, #names)
  end)
end)
