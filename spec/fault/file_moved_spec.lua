-- Places of the file oracle that become others from under a leader, without its hearing of it: mounts, and moves further up.
-- Somebody had led before in the place that is there afterwards, so that its records tell of nobody else.
local crown = require "crown"
local program = require "support.program"
local tempdir = require "support.tempdir"

-- LEADS: makes it another place, and begins to lead there; BACK: makes it the first one again. 1: somebody else leads.
local PLAY = [[
leads() {
  mkfifo leads
  "$@" --node leader spec sh -c 'echo $$ >leads; exec sleep 600' & leader=$!
  read -r child <leads
}
run() { "$@" --node newcomer --once spec true; }
mkdir -m 700 -p top/place/locks disk || exit 9
FIRST
"$@" --node before spec true || exit 8
LEADS || exit 7
leads "$@"
BACK || exit 6
CHECK
code=$?
END
kill -0 "$child" || code=5
kill "$leader"
wait "$leader"
[ $code != 1 ] || run "$@" || code=4
exit $code
]]

local MOVES = {
  ["over which a file system is mounted"] = { first = "mount --bind disk top/place/locks", leads = "umount top/place/locks",
    back = "mount --bind disk top/place/locks" },
  ["from over which a file system is taken away"] = { leads = "mount --bind disk top/place/locks", back = "umount -l top/place/locks" },
  ["from over which a file system is moved"] = { leads = "mkdir -m 700 moved && mount --bind disk top/place/locks",
    back = "mount --move top/place/locks moved" },
  ["below a directory that is moved away and back"] = { leads = "mv top away && mkdir -m 700 -p top/place/locks",
    back = "mv top other && mv away top" },
  ["below a link that is given another target"] = { leads = "mv top other && mkdir -m 700 -p one/place/locks && ln -s one top",
    back = "ln -sfn other top" },
}

-- What gives mounts of one's own; nil where nothing does, or what it gives takes no `more` of unshare(1).
local function apart(more)
  for _, words in ipairs { { "unshare", "--mount" }, { "unshare", "--user", "--map-root-user", "--mount" } } do
    local tried = crown.exec { "sh", "-c", ("%s %s true"):format(table.concat(words, " "), more or "") }
    if tried and tried.code == 0 then return words end
  end
end

local function play(move, check, before_end)
  local words = apart()
  local dir, here = tempdir(), crown.exec({ "/bin/pwd" }).stdout:gsub("\n", "")
  local script = PLAY:gsub("%f[%u]%u+%f[%U]", {
    FIRST = move.first or "", LEADS = move.leads, BACK = move.back, CHECK = check or 'run "$@"', END = before_end or "" })
  for _, word in ipairs { "sh", "-c", "cd " .. dir .. "\n" .. script, "sh", program:sub(1, 1) == "/" and program or here .. "/" .. program,
    "run", "--quiet", "--oracle", "file:" .. dir .. "/top/place/locks" } do words[#words + 1] = word end
  return crown.exec(words, { timeout = 60, env = { CROWN_DIRECTORY = dir } })
end

-- Whoever of the leader is left has the mark.
local HURT = [[
keeper=$(pgrep -P $leader -x crown-keeper)
kill -STOP $leader $keeper && kill -KILL $(pgrep -P $leader -x crown-runtime)
run "$@"
code=$?
kill -CONT $leader $keeper
(exit $code)]]

-- unshare ends with 1 as well where it cannot.
local ELSEWHERE = [[unshare --net "$@" --node newcomer --once spec true]]

describe("a directory of the file oracle", function()
  it("has one leader in all network namespaces", function()
    if not apart "--net" then return pending "no namespaces of one's own can be made here" end
    local result = play({ leads = "true", back = "true" }, ELSEWHERE)
    assert.equal(1, result.code, result.stderr)
  end)

  for _, what in ipairs { "below a directory that is moved away and back", "below a link that is given another target" } do
    it(what .. " has no second leader while what a killed runtime has started runs on in the other place", function()
      if not apart() then return pending "no mounts of one's own can be made here" end
      local result = play(MOVES[what], HURT, "child=$$")
      assert.equal(1, result.code, result.stderr)
    end)
  end

  -- There the lock alone decides, which is the last that the tree was given.
  it("below a link has no second leader in another network namespace while what a killed runtime has started runs on", function()
    if not apart "--net" then return pending "no namespaces of one's own can be made here" end
    local elsewhere = HURT:gsub('run "%$@"', function() return ELSEWHERE end)
    local result = play({ leads = "mv top other && ln -s other top", back = "true" }, elsewhere, "child=$$")
    assert.equal(1, result.code, result.stderr)
  end)

  -- The records tell of mounts also where no mark is seen.
  it("over which a file system is mounted has no second leader in another network namespace", function()
    if not apart "--net" then return pending "no mounts of one's own can be made here" end
    local result = play(MOVES["over which a file system is mounted"], ELSEWHERE)
    assert.equal(1, result.code, result.stderr)
  end)

  for what, move in pairs(MOVES) do
    it(what .. " has no second leader while somebody leads in the other place", function()
      if not apart() then return pending "no mounts of one's own can be made here" end
      local result = play(move)
      assert.equal(1, result.code, result.stderr)
    end)
  end
end)
