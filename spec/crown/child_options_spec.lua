--- The options of an app's children, by what the children see of them.
local Candidate = require "support.candidate"
local eventually = require "crown.testing.eventually"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local Terminal = require "support.terminal"
local write_file = require "support.write_file"

-- Says which signals it gets. TERM ends it, and so does the one that is named.
local TOLD = [[
for signal in HUP INT USR1 USR2 TERM; do trap "echo $signal >> '$0'" $signal; done
echo up >> "$0"
until grep -q -e TERM -e "^$1\$" "$0"; do sleep 0.02; done]]

describe("an app's child", function()
  local dir, one

  before_each(function() dir = tempdir() end)
  after_each(function() if one then one:destroy() end end)

  local function app(text)
    return write_file(dir .. "/app.lua", ("local crown, dir = require 'crown', %q\nlocal oracle = 'file:' .. dir .. '/locks'\n%s"):format(
      dir, text))
  end

  local function start(text)
    one = Candidate.start { args = { app(text) }, node = "one", log = dir .. "/log", env = { CROWN_DIRECTORY = dir } }
    return one
  end

  local function said() return read_file(dir .. "/said") or "" end
  local function says(text) eventually(function() return said():find(text, 1, true) end, 20) end

  local function start_told(options, last)
    write_file(dir .. "/told.sh", TOLD)
    start(([[
      crown.elect { name = "spec", oracle = oracle, stop_timeout = 20, child = { %s,
        command = { "bash", "-c", io.open(dir .. "/told.sh"):read "*a", dir .. "/said", "%s" } } }]]):format(options, last))
    says "up"
  end

  for given, name in pairs { ['"HUP"'] = "HUP", ['"SIGUSR1"'] = "USR1", ["12"] = "USR2", ["nil"] = "TERM" } do
    it("is stopped by its stop_signal: " .. given, function()
      start_told("stop_signal = " .. given, name)
      one:signal "TERM"
      assert.equal(0, one:wait(20))
      assert.equal("up\n" .. name .. "\n", said())
      assert.not_matches("child%.killed", one:output())
    end)
  end

  it("is interrupted, and a second later told to terminate, in mode interrupt", function()
    start_told('mode = "interrupt"', "none")
    one:signal "TERM"
    assert.equal(0, one:wait(20))
    assert.equal("up\nINT\nTERM\n", said())
  end)

  it("is told that it leads where it asks for it, and else is not", function()
    start_told("told = true", "none")
    says "USR1"
    one:signal "TERM"
    assert.equal(0, one:wait(20))
    assert.equal("up\nUSR1\nTERM\n", said())
  end)

  -- Of /proc/PID/stat: its process group, and the terminal's foreground group.
  for terminal, place in pairs { [true] = "foreground", [false] = "background" } do
    it(("is in the terminal's %s with terminal = %s"):format(place, tostring(terminal)), function()
      one = Terminal.start { env = { CROWN_DIRECTORY = dir }, args = { app(([[
        crown.elect { name = "spec", oracle = oracle, child = { terminal = %s, restart = { policy = "finish" },
          command = { "sh", "-c", 'read -r stat < /proc/$$/stat; set -- ${stat##*)}; [ "$3" = "$6" ] && echo foreground' ..
            ' || echo background; read line; echo "got $line"; exit 3' } } }]]):format(tostring(terminal))) } }
      one:shows(place)
      one:type "it\n"
      one:shows "got it"
      assert.equal(3, one:wait(20))
    end)
  end

  for script, code in pairs { ["exit 0"] = 0, ["exit 7"] = 7, ["kill -KILL $$"] = 137, ["exec /none/such"] = 127 } do
    it("is the end of the program with policy finish: " .. script, function()
      start(([[
        crown.elect { name = "spec", oracle = oracle, handlers = { lost = function(reason) print("lost " .. reason) end },
          child = { command = { "sh", "-c", "%s" }, restart = { policy = "finish" } } }]]):format(script))
      assert.equal(code, one:wait(20))
      assert.matches("lost shutdown", one:output())
      assert.matches("leadership.abdicated", one:output(), 1, true)
    end)
  end
end)

describe("a follower's child", function()
  local dir, leader, follower

  -- How often it starts: again and again, once, or again after `within`, which is long here.
  local STARTS = {
    permanent = { well = "often", badly = "often", never = "once" },
    transient = { well = "once", badly = "often", never = "once" },
    temporary = { well = "once", badly = "once", never = "once" },
    finish = { well = "once", badly = "once", never = "once" },
  }

  local COMMANDS = { well = "true", badly = "false", never = "/none/such" }

  before_each(function() dir = tempdir() end)
  after_each(function()
    if follower then follower:destroy() end
    if leader then leader:destroy() end
  end)

  local function start(node, text)
    return Candidate.start { node = node, log = dir .. "/" .. node, env = { CROWN_DIRECTORY = dir },
      args = { write_file(dir .. "/" .. node .. ".lua", "local crown, oracle = require 'crown', 'file:" .. dir .. "/locks'\n" .. text) } }
  end

  local function declared(options)
    local list = {}
    for policy, ways in pairs(STARTS) do
      for way in pairs(ways) do
        list[#list + 1] = ("crown.elect { name = '%s-%s', oracle = oracle, %s }"):format(policy, way, options(policy, way))
      end
    end
    return table.concat(list, "\n")
  end

  -- Each start is told of as one that succeeded or as one that failed.
  local function ends(policy, way)
    local count, name = 0, ('name=%s-%s '):format(policy, way)
    for line in follower:output():gmatch "[^\n]+" do
      if line:find("child.exited", 1, true) and line:find(name, 1, true) then count = count + 1 end
    end
    return count
  end

  it("is started again by its policy, and its end never ends the election", function()
    leader = start("leader", declared(function() return "" end))
    local led = 0
    for _ in pairs(STARTS) do led = led + 3 end
    eventually(function() return select(2, leader:output():gsub("leadership%.claimed", "")) == led end, 20)
    follower = start("follower", declared(function(policy, way)
      return ("follower_child = { command = { '%s' }, restart = { policy = '%s', max = 16, within = 3600, backoff = { 0.02, 0.02 } } }")
        :format(COMMANDS[way], policy)
    end))
    for policy, ways in pairs(STARTS) do
      for way, often in pairs(ways) do
        eventually(function() return ends(policy, way) >= (often == "often" and 6 or 1) end, 20)
      end
    end
    for policy, ways in pairs(STARTS) do
      for way, often in pairs(ways) do
        if often == "once" then assert.equal(1, ends(policy, way), policy .. " " .. way) end
      end
    end
    leader:signal "TERM"
    leader:wait(20)
    eventually(function() return select(2, follower:output():gsub("leadership%.claimed", "")) == led end, 20)
  end)
end)
