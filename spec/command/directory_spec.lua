-- Where the embedded oracle of this host elects when nobody names a directory: one place for one user, whoever starts the program,
-- and never a place that somebody else has prepared.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"

local NOBODY = 65534

local function shell(text, ...)
  local result = assert(crown.exec { "sh", "-c", text:format(...) })
  assert(result.code == 0, result.stderr)
  return (result.stdout:gsub("\n$", ""))
end

describe("the default directory", function()
  local dir, started

  before_each(function() dir, started = tempdir(), {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  -- The program as another user's: in a place that this user may read, with nothing of our environment but what is given.
  local function as_nobody(env, ...)
    shell("chmod 755 %s; test -e %s/program || install -m 755 %s %s/program", dir, dir, program, dir)
    local words = { "setpriv", "--reuid", tostring(NOBODY), "--regid", tostring(NOBODY), "--clear-groups", "env", "-i",
      "PATH=" .. os.getenv "PATH" }
    for key, value in pairs(env) do words[#words + 1] = key .. "=" .. value end
    words[#words + 1] = dir .. "/program"
    for _, word in ipairs { ... } do words[#words + 1] = word end
    return words
  end

  it("is the same from a login shell, from cron and from sudo -u", function()
    if not is_root then return pending "only root can start a program as another user" end
    local name = "directory-" .. dir:match "[^-]+$"
    shell("mkdir -m 700 %s/runtime %s/home && chown %d %s/runtime %s/home", dir, dir, NOBODY, dir, dir)
    local login = as_nobody({ XDG_RUNTIME_DIR = dir .. "/runtime", HOME = dir .. "/home" }, "run", name, "sh", "-c",
      "echo leads; exec sleep 60")
    local one = Candidate.start { program = "/usr/bin/" .. table.remove(login, 1), args = login, node = "one", log = dir .. "/log" }
    started[1] = one
    eventually(function() return one:output():find "leads" end, 10)
    local cron = assert(crown.exec(as_nobody({}, "run", "--once", name, "echo", "leads too")))
    assert.equal("", cron.stdout)
    assert.matches("is led by", cron.stderr)
    assert.equal(1, cron.code)
  end)

  it("is CROWN_DIRECTORY where that is set, as an absolute path", function()
    local env = { CROWN_DIRECTORY = dir .. "/here" }
    assert.equal(0, run({ "run", "named", "true" }, { env = env }).code)
    assert.equal("700", shell("stat -c %%a %s/here", dir))
    assert.matches("named", run({ "info" }, { env = env }).stdout)
    local refused = run({ "run", "named", "true" }, { env = { CROWN_DIRECTORY = "here" } })
    assert.equal(2, refused.code)
    assert.matches("CROWN_DIRECTORY: 'here' is not an absolute path", refused.stderr)
  end)

  it("is refused where CROWN_DIRECTORY names something else, and missed aloud where nothing can be made there", function()
    for _, words in ipairs { { "run", "--oracle", "memory:", "x", "true" }, { "check", "run", "x", "true" }, { "status" } } do
      local refused = run(words, { env = { CROWN_DIRECTORY = "/dev/null" } })
      assert.same({ 2, "crown-lua: CROWN_DIRECTORY=/dev/null: that is not a directory\n" }, { refused.code, refused.stderr })
    end
    local led = run({ "run", "--oracle", "memory:", "x", "true" }, { env = { CROWN_DIRECTORY = "/proc/x" } })
    assert.equal(0, led.code)
    assert.matches("warn  status, abdicate and log%-level do not find this runtime, .*/proc/x", led.stderr)
  end)

  it("is made where CROWN_DIRECTORY says, but nothing above it: who mistypes it would be alone there, and lead", function()
    for _, typo in ipairs { dir .. "/tpyo/own", "/crown-lua-spec-" .. dir:match "[^-/]+$" } do
      for _, words in ipairs { { "run", "x", "true" }, { "run", "--oracle", "memory:", "x", "true" }, { "info" }, { "status" },
        { "history" } } do
        local result = run(words, { env = { CROWN_DIRECTORY = typo } })
        local is_made = io.open(typo)
        if is_made then shell("rm -r %s", typo) end
        assert.is_nil(is_made)
        assert.equal(2, result.code, result.stderr)
        assert.matches("CROWN_DIRECTORY=" .. typo:gsub("%p", "%%%0") .. ": there is no directory /.*: make it first", result.stderr)
      end
    end
    assert.is_nil((io.open(dir .. "/tpyo")))
  end)

  it("is refused when it belongs to somebody else", function()
    if not is_root then return pending "only root can give a directory away" end
    shell("mkdir %s/theirs && chown %d %s/theirs", dir, NOBODY, dir)
    local result = run({ "run", "x", "true" }, { env = { CROWN_DIRECTORY = dir .. "/theirs" } })
    assert.equal(2, result.code)
    assert.matches("belongs to another user", result.stderr)
    result = run({ "status" }, { env = { CROWN_DIRECTORY = dir .. "/theirs" } })
    assert.equal(2, result.code)
    assert.matches("belongs to another user", result.stderr)
  end)

  it("says of another user's locks and sockets that they may not be looked at", function()
    if not is_root then return pending "only root can start a program as another user" end
    shell("mkdir -m 755 %s/here", dir)
    started[1] = Candidate.start { args = { "run", "o", "sh", "-c", "echo leads; exec sleep 60" }, node = "one", log = dir .. "/log",
      env = { CROWN_DIRECTORY = dir .. "/here" } }
    eventually(function() return started[1]:output():find "leads" end, 10)
    local function says(words, code, ...)
      local result = assert(crown.exec(as_nobody({ CROWN_DIRECTORY = dir .. "/here" }, ...)))
      assert.matches(words, result.stdout .. result.stderr)
      assert.equal(code, result.code, result.stderr)
    end
    local LOCK = "/o%.lock: Permission denied: ask as the user whose candidates lock it"
    says(LOCK, 0, "info")
    says(LOCK, 3, "evict", "--force", "o")
    says(LOCK, 3, "handover", "--to", "two", "o")
    says("not allowed to ask", 0, "status")
    says("no answer from runtime %d+, which may take part in 'o': its socket may not be opened by this user", 1, "abdicate", "o")
    shell("chmod 700 %s/here", dir)
    says("Permission denied", 3, "evict", "--force", "--oracle", "file:" .. dir .. "/here", "o")
  end)

  -- The group's directory is the one in which another user can make a socket.
  it("holds no runtime of another user's, whatever its socket is called and says", function()
    if not is_root then return pending "only root can start a program as another user" end
    local STRANGER, path = NOBODY - 1, dir .. "/users/runtime-1.sock"
    shell("mkdir -m 2770 %s/users && chown %d:%d %s/users && chmod 755 %s", dir, NOBODY, STRANGER, dir, dir)
    local ANSWER = [[SYSTEM:read line; echo '{"elections":[{"name":"planted","phase":"leading","oracle":"file"}]}']]
    started[1] = Candidate.start { program = "/usr/bin/setpriv", node = "stranger", log = dir .. "/log", args = { "--reuid",
      tostring(STRANGER), "--regid", tostring(STRANGER), "--clear-groups", "socat",
      "UNIX-LISTEN:" .. path .. ",fork,mode=777", ANSWER } }
    eventually(function() return os.execute(("test -S %s"):format(path)) == 0 end, 20)
    local result = assert(crown.exec(as_nobody({ CROWN_DIRECTORY = dir .. "/users" }, "status")))
    assert.matches("no answer", result.stdout)
    assert.is_nil((result.stdout .. result.stderr):find "planted")
    local asked = assert(crown.exec(as_nobody({ CROWN_DIRECTORY = dir .. "/users" }, "abdicate", "planted")))
    assert.equal(1, asked.code)
    assert.matches("no answer from runtime 1, which may take part in 'planted': is it stopped%?", asked.stderr)
    local told = assert(crown.exec(as_nobody({ CROWN_DIRECTORY = dir .. "/users" }, "log-level", "info")))
    assert.same({ 1, "", "crown-lua: log-level: no answer from runtime 1: is it stopped?\n" }, { told.code, told.stdout, told.stderr })
  end)

  it("holds locks that nobody else may open, unless the directory is a group's", function()
    local umask = "umask 022; "
    shell(umask .. "CROWN_DIRECTORY=%s/mine %s run x true", dir, program)
    assert.equal("600", shell("stat -c %%a %s/mine/x.lock", dir))
    shell("mkdir %s/group && chmod 2770 %s/group", dir, dir)
    shell(umask .. "%s run --oracle file:%s/group x true", program, dir)
    assert.equal("660", shell("stat -c %%a %s/group/x.lock", dir))
  end)

  it("refuses a relative path, which would be another election in every working directory", function()
    for _, words in ipairs { { "run", "--oracle", "file:locks", "x", "true" }, { "info", "--oracle", "file:locks" },
      { "evict", "--force", "--oracle", "file:locks", "x" } } do
      local result = run(words)
      assert.are_not.equal(0, result.code)
      assert.matches("file:locks is relative to the working directory: write file:/", result.stderr)
    end
  end)

  it("makes a directory that is named, but none above it: that would be a mistake, or a file system that is not mounted", function()
    local typo = tempdir() .. "/tpyo"
    for _, words in ipairs { { "run", "--oracle", "file:" .. typo .. "/locks", "x", "true" },
      { "info", "--oracle", "file:" .. typo .. "/locks/" }, { "evict", "--force", "--oracle", "file:" .. typo .. "/locks", "x" } } do
      local result = run(words)
      assert.equal(2, result.code)
      assert.truthy(result.stderr:find("there is no directory " .. typo .. ": make it first", 1, true), result.stderr)
    end
    assert.is_nil((io.open(typo)))
    assert.equal(0, run({ "run", "--oracle", "file:" .. typo .. "/", "x", "true" }).code)
  end)

  it("makes none directly below /, where only a path that was cut short leads", function()
    local typo = "/crown-lua-spec-" .. dir:match "[^-/]+$"
    local made = { "run", "--oracle", "file:" .. typo, "x", "true" }
    for _, words in ipairs { made, { "info", "--oracle", "file:" .. typo .. "/" },
      { "evict", "--force", "--oracle", "file:" .. typo, "x" } } do
      local result = run(words)
      local is_made = io.open(typo)
      if is_made then shell("rm -r %s", typo) end
      assert.is_nil(is_made)
      assert.equal(2, result.code)
      assert.truthy(result.stderr:find("none is made directly below /: make it first, if that is the right one (mkdir -m 700 "
        .. typo .. ")", 1, true), result.stderr)
    end
    if not is_root then return end
    shell("mkdir -m 700 %s", typo)
    local result = run(made)
    shell("rm -r %s", typo)
    assert.equal(0, result.code)
  end)
end)
