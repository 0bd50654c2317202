local crown = require "crown"
local plain_program = require "support.plain_program"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function script(text)
  return write_file(tempdir() .. "/app.lua", text)
end

-- One clear line on stderr and exit code 2.
local function refused(args, pattern, env)
  local result = run(args, { env = env })
  assert.equal(2, result.code, result.stderr)
  assert.matches(pattern, result.stderr)
  assert.equal(1, select(2, result.stderr:gsub("\n", "")))
end

describe("the command", function()
  it("says its version at once", function()
    assert.matches("^crown%-lua %d+%.%d+%.%d+[%w.-]*\n$", run({ "--version" }).stdout)
  end)

  it("says what it is made of", function()
    local said = run({ "--version", "--verbose" })
    assert.equal(0, said.code, said.stderr)
    assert.matches("^crown%-lua %d+%.%d+%.%d+[%w.-]*\n  built by +%a+ %d", said.stdout)
    for _, library in ipairs { "LuaJIT", "lua%-cjson", "libev", "c%-ares", "OpenSSL", "hiredis", "libpq", "libmicrohttpd" } do
      assert.matches("\n  " .. library .. " +%d+%.%d", said.stdout)
    end
    assert.matches("\n  libcurl +libcurl/%d", said.stdout)
    for _, feature in ipairs { "real%-time", "locked memory", "pidfd", "PID namespaces" } do
      assert.matches("\n  " .. feature .. " +%a", said.stdout)
    end
  end)

  it("says what the kernel does not give", function()
    local said = assert(crown.exec(plain_program("--version", "--verbose"), { env = { CROWN_DIRECTORY = tempdir() } }))
    assert.matches("\n  real%-time +no: ", said.stdout, said.stderr)
    assert.matches("\n  locked memory +no: ", said.stdout)
    assert.matches("\n  pidfd +yes\n", said.stdout)
  end)

  it("teaches by --help, and by help COMMAND", function()
    local help = run { "--help" }
    assert.equal(0, help.code)
    assert.matches("crown.elect", help.stdout)
    assert.matches("campaign for nothing", run({ "help", "check" }).stdout)
    assert.matches("campaign for nothing", run({ "check", "--help" }).stdout)
  end)

  it("is used wrongly when nothing is asked of it", function()
    assert.equal(2, run({}).code)
  end)

  describe("with a full disk behind standard output", function()
    local place = tempdir()
    local app = script [[require("crown").elect { name = "x", oracle = "memory:", child = { "true" } }]]
    write_file(place .. "/history", '{"event":"leadership.changed","time":1,"name":"x","node":"n","leader":"n","epoch":1}\n')

    local function says(args)
      local words = { "-c", [[exec "$0" "$@" > /dev/full]], program }
      for _, word in ipairs(args) do words[#words + 1] = word end
      table.insert(words, 1, "sh")
      local result = assert(crown.exec(words, { timeout = 40, env = { CROWN_DIRECTORY = place } }))
      return { result.code, result.stderr }
    end

    for _, line in ipairs { "--version", "--help", "help run", "help --man", "history", "history --json", "status", "status --json",
      "status --watch", "info", "info --json", "check " .. app, "check --json " .. app, "completion bash", "completion zsh",
      "completion fish", "completion names" } do
      it("fails, and says so in a line: " .. line, function()
        local words = {}
        for word in line:gmatch "%S+" do words[#words + 1] = word end
        assert.same({ 1, "crown-lua: write standard output: No space left on device\n" }, says(words))
      end)
    end
  end)

  it("does not mind a reader who has seen enough", function()
    local result = assert(crown.exec { "bash", "-c", [["$0" completion bash | true; echo "${PIPESTATUS[0]}"]], program })
    assert.equal("0\n", result.stdout)
    assert.equal("", result.stderr)
  end)

  it("suggests the command that was meant", function()
    refused({ "chekc" }, "did you mean 'check'")
  end)

  it("suggests the option that was meant", function()
    refused({ "--orcale", "file:x", "info" }, "did you mean '%-%-oracle'")
  end)

  it("names an app that is not there", function()
    refused({ "./no-such-app.lua" }, "no app './no%-such%-app.lua'")
  end)

  it("names the line of an app that does not parse", function()
    refused({ script "local x = = 1" }, "app.lua:1:")
  end)

  it("refuses a wrong option, level, number and URL", function()
    refused({ "--log-level", "loud", "info" }, "not one of debug")
    refused({ "--ttl", "x", "info" }, "not a number")
    refused({ "--oracle", "ftp://x", "info" }, "no oracle has the scheme 'ftp'")
    refused({ "info" }, "no oracle has the scheme", { CROWN_ORACLE = "gopher:x" })
  end)

  it("never shows a password in an error", function()
    local result = run { "--oracle", "nosuch://user:hunter2@host/db", "info" }
    assert.equal(2, result.code)
    assert.is_nil((result.stderr .. result.stdout):find "hunter2")
  end)

  it("runs a script like any Lua interpreter: arg, ..., exit codes", function()
    local path = script "print(arg[0] ~= nil, arg[1], ..., select('#', ...)) os.exit(7)"
    local result = run { path, "a", "b" }
    assert.equal("true\ta\ta\tb\t2\n", (result.stdout:gsub("a\t2", "a\tb\t2")))
    assert.equal(7, result.code)
  end)

  it("ends silently with 1 when a script raises nil", function()
    local result = run { script "error()" }
    assert.equal(1, result.code)
    assert.equal("", result.stderr)
  end)

  for label, case in pairs {
    ["a loop"] = { 3, "local clock = os.clock\nlocal started = clock()\nwhile clock() - started < 2 do end" },
    ["a function"] = { 2, "local function busy(clock, till)\n  while clock() < till do end\nend\nbusy(os.clock, os.clock() + 2)" },
    ["a handler"] = { 3, "require('crown').elect { name = 'x', oracle = 'memory:', handlers = { won = function()\n"
      .. "local till = os.clock() + 2\nwhile os.clock() < till do end os.exit(0)\nend } }" },
  } do
    it("names the file and the line of what holds an app: " .. label, function()
      local result = run { script(case[2]) }
      assert.equal(0, result.code)
      assert.matches(("/app%%.lua:%d: a task has run for 200 ms without a wait"):format(case[1]), result.stderr)
    end)
  end

  it("ends with 2 when an app raises, and tells where", function()
    local result = run { script "error 'broken'" }
    assert.equal(2, result.code)
    assert.matches("app.lua:1: broken", result.stderr)
  end)
end)

describe("crown-lua check", function()
  it("shows the timing, the sum and the worst case of a failover, and campaigns for nothing", function()
    local dir = tempdir()
    local path = script(([[require("crown").elect { name = "c", oracle = { "memory", ttl = 12 }, child = { "true" } }
      require("crown").elect { name = "f", oracle = "file:%s" }]]):format(dir))
    local result = run { "check", path }
    assert.equal(0, result.code, result.stderr)
    assert.matches("TTL%s+12 s", result.stdout)
    assert.matches("failover%s+at most 12 s", result.stdout)
    assert.matches("no overlap", result.stdout)
    assert.matches("2 elections, nothing wrong", result.stdout)
    assert.is_nil(io.open(dir .. "/f.lock"))
  end)

  it("refuses timing that could overlap, with the sum", function()
    refused({ "check", script [[require("crown").elect { name = "c", oracle = { "memory", ttl = 2 }, stop_timeout = 1.9 }]] },
      "timing could overlap: refresh .* %+ stop_timeout .* = .* less than the TTL of 2 s")
  end)

  it("refuses an app that declares no election", function()
    refused({ "check", script "local x = 1" }, "declares no election")
  end)

  it("refuses a program that is not there", function()
    refused({ "check", script [[require("crown").elect { name = "c", child = { "no-such-program" } }]] },
      "elect 'c': child: there is no program 'no%-such%-program' here")
    refused({ "check", script [[require("crown").elect { name = "c", child = { "/etc/passwd" } }]] }, "'/etc/passwd' here")
    local path = script [[require("crown").elect { name = "c", child = { command = { "./app.lua" }, cwd = arg[0]:match "(.*)/" } }]]
    refused({ "check", path }, "'./app.lua' here")
    assert(os.execute("chmod +x " .. path) == 0)
    assert.equal(0, run({ "check", path }).code)
  end)

  it("names the line of an app that is wrong", function()
    refused({ "check", script "local crown = require 'crown'\ncrown.elect { name = 'c', rety = 1 }" },
      "app.lua:2: elect 'c': unknown option 'rety' %(did you mean 'retry'%?%)")
  end)
end)

describe("crown.log", function()
  it("writes what is no text, number or switch too", function()
    local result = run { "--log-format", "json", script [[
      require("crown").log.info("said", { list = { 1, 2 }, fn = print, yes = true, [7] = "seven" })]] }
    assert.matches('"list":"%[1,2%]"', result.stderr)
    assert.matches('"fn":"function: ', result.stderr)
    assert.matches('"7":"seven"', result.stderr)
    assert.matches('"yes":true', result.stderr)
  end)

  it("has the supervisor write as the runtime does", function()
    local app = script "os.execute('kill -9 $PPID')"
    for word, pattern in pairs { json = '^{"time":"[^"]+","level":"warn","msg":"the runtime was ended by signal 9 %(Killed%)"}\n$',
      logfmt = '^time=%S+ level=warn msg="the runtime was ended by signal 9 %(Killed%)"\n$' } do
      local result = run({ "--log-format", word, app })
      assert.equal(137, result.code, result.stderr)
      assert.matches(pattern, result.stderr)
    end
    assert.equal("", run({ "--log-level", "error", app }).stderr)
  end)

  it("writes fields, and those of tables in them, in the order of their names", function()
    local names, fields, inner = {}, {}, {}
    for letter in ("qwertyuiopasdfghjkl"):gmatch "." do
      fields[#fields + 1], inner[#inner + 1] = letter .. " = 1", letter .. " = { z = 1, b = 2, a = { true } }"
      names[#names + 1] = letter
    end
    table.sort(names)
    local result = run { "--log-format", "logfmt", script(([[
      require("crown").log.info("said", { %s })
      require("crown").log.info("deep", { t = { %s } })
      require("crown").log.info("many", (function() local t = {} for i = 100, 150 do t["f" .. i] = i end return t end)())]])
      :format(table.concat(fields, ", "), table.concat(inner, ", "))) }
    assert.matches("said .-" .. table.concat(names, "=1 ") .. "=1\n", result.stderr)
    local said = result.stderr:match "deep[^\n]*"
    local at = 1
    for _, name in ipairs(names) do
      local text = ('"%s":{"a":[true],"b":2,"z":1}'):format(name):gsub('"', [[\"]])
      at = assert(said:find(text, at, true), text)
    end
    assert.matches("f100=100 .-f131=131\n", result.stderr) -- more are left out, always the same ones
  end)
end)
