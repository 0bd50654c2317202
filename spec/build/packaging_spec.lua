-- What is installed for others to run: units of the service manager, rules and a dashboard for Prometheus.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function sh(command)
  return assert(crown.exec({ "sh", "-c", command }, { timeout = 60 }))
end

describe("what is packaged", function()
  for _, unit in ipairs { "crown-lua@", "crown-run@" } do
    it(unit .. ".service is what systemd takes without a word", function()
      local dir = tempdir()
      local text = assert(read_file("tools/systemd/" .. unit .. ".service"))
      write_file(dir .. "/crown-lua", "#!/bin/sh\n")
      sh("chmod +x " .. dir .. "/crown-lua")
      local path = ("%s/%sreports.service"):format(dir, unit)
      text = text:gsub("@PREFIX@/bin", dir):gsub("Documentation=[^\n]*\n", "")
      write_file(path, text)
      local result = sh(("SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --recursive-errors=no %s 2>&1"):format(path))
      assert.equal("", (result.stdout:gsub("[^\n]*SO_PASSCRED[^\n]*\n", "")))
      assert.equal(0, result.code)
    end)
  end

  -- docs/how-to/systemd.md says why; systemd takes a unit without them, too.
  for unit, restart in pairs { ["crown-lua@"] = "on-failure", ["crown-run@"] = "always" } do
    it(unit .. ".service ends in order, is watched, is on time, and is not root's", function()
      local text = read_file("tools/systemd/" .. unit .. ".service")
      for _, line in ipairs { "Type=notify", "NotifyAccess=all", "WatchdogSec=10", "KillMode=mixed", "TimeoutStopSec=30",
        "Restart=" .. restart, "RestartSec=1", "DynamicUser=yes", "User=crown-lua",
        "StateDirectory=crown-lua-units", "StateDirectoryMode=0700",
        "Environment=CROWN_DIRECTORY=%S/private/crown-lua-units", "LimitRTPRIO=10", "LimitMEMLOCK=infinity",
        "NoNewPrivileges=yes", "ProtectKernelTunables=yes", "RestrictSUIDSGID=yes", "WantedBy=multi-user.target" } do
        assert.is_truthy(text:find("\n" .. line .. "\n", 1, true), line)
      end
    end)
  end

  it("every alert is one that promtool takes, and fires when it should", function()
    local result = sh "cd tools/monitoring && promtool check rules alerts.yml 2>&1 && promtool test rules alerts_test.yml 2>&1"
    assert.equal(0, result.code, result.stdout)
  end)

  it("every alert has a row that says what to do first, and no row is of none", function()
    local alerts, rows = {}, {}
    for name in read_file("tools/monitoring/alerts.yml"):gmatch "%- alert: (%w+)" do alerts[name] = true end
    for name in read_file("docs/troubleshooting.md"):gmatch "\n| `(Crown%w+)` |" do rows[name] = true end
    assert.same(alerts, rows)
  end)

  it("alerts and dashboard ask for metrics that there are", function()
    local known = {}
    for _, file in ipairs { "metrics", "jobs" } do
      for name in read_file(("lua/crown/web/%s.lua"):format(file)):gmatch '"(crown_[%w_]+)"' do known[name] = true end
    end
    for name in read_file("lua/crown/web/metrics.lua"):gmatch "'(crown_[%w_]+){" do known[name] = true end
    known.crown_oracle_call_seconds_bucket = true
    local asked = 0
    for _, file in ipairs { "alerts.yml", "dashboard.json" } do
      for name in read_file("tools/monitoring/" .. file):gmatch "%f[%w_](crown_[%w_]+)" do
        assert.is_true(known[name], name)
        asked = asked + 1
      end
    end
    assert.is_true(asked > 15)
    assert.equal("crown-lua", crown.json.decode(read_file "tools/monitoring/dashboard.json").title)
  end)

  it("every question of the dashboard is one that Prometheus understands", function()
    local rules = {}
    for _, panel in ipairs(crown.json.decode(read_file "tools/monitoring/dashboard.json").panels) do
      for _, target in ipairs(panel.targets) do
        local question = target.expr:gsub("%$election", "reports")
        rules[#rules + 1] = { record = ("crown:panel_%d"):format(#rules), expr = question }
      end
    end
    assert.is_true(#rules > 8)
    local file = write_file(tempdir() .. "/rules.yml", crown.json.encode { groups = { { name = "dashboard", rules = rules } } })
    local result = sh("promtool check rules " .. file .. " 2>&1")
    assert.equal(0, result.code, result.stdout)
  end)

  it("install brings all of it, and uninstall takes it away", function()
    local dir = tempdir()
    local result = sh(("make -s install DESTDIR=%s PREFIX=/usr INSTALL_PACKAGES=true 2>&1"):format(dir))
    assert.equal(0, result.code, result.stdout)
    for _, path in ipairs { "usr/lib/systemd/system/crown-run@.service", "usr/share/crown-lua/monitoring/alerts.yml",
      "usr/share/crown-lua/monitoring/dashboard.json", "usr/share/man/man1/crown-lua-history.1",
      "usr/share/man/man1/crown-lua.1", "usr/share/man/man3/crown-lua.3", "usr/share/bash-completion/completions/crown-lua",
      "usr/share/zsh/site-functions/_crown-lua", "usr/share/fish/vendor_completions.d/crown-lua.fish",
      "usr/share/doc/crown-lua/LICENSE", "usr/share/doc/crown-lua/docs/install.md" } do
      assert.is_truthy(read_file(dir .. "/" .. path), path)
    end
    assert.equal(0, sh(("test -d %s/etc/crown-lua"):format(dir)).code)
    assert.matches("ExecStart=/usr/bin/crown%-lua run", read_file(dir .. "/usr/lib/systemd/system/crown-run@.service"))
    assert.equal(0, sh(("make -s uninstall DESTDIR=%s PREFIX=/usr INSTALL_PACKAGES=true 2>&1"):format(dir)).code)
    assert.equal("", sh(("find %s -type f -o -name crown-lua -path '*share*'"):format(dir)).stdout)
  end)
end)
