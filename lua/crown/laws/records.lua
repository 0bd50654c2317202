--- Laws of a store that answers: what a look tells, and what a write may change.
-- @internal crown.laws.records

local Bench = require "crown.laws.bench"
local core = require "crown.core"

local broken, show = Bench.broken, Bench.show

local WRITES = 5 -- of one record, one after the other
local ROUNDS, WRITERS = 10, 2 -- of writers at once, in each of two stores: no more calls are under way in one
local LOOKS = 10
local HEARD_WITHIN = 10 -- seconds
local LONG_NAME, LONG_TEXT = 128, 3000

-- What stands has to be that text; where the version is known, that one, too.
local function expect(bench, name, text, version, when)
  for _, store in ipairs { bench.one, bench.two } do
    local answer = Bench.look(store, name)
    if answer.text ~= text then broken("%s, a look finds %s, and not %s", when, show(answer.text), show(text)) end
    if version ~= nil and answer.version ~= version then
      broken("%s, a look tells version %s, and not %s", when, show(answer.version), show(version))
    end
  end
end

local function refused(bench, name, version, when)
  local new, problem = bench:write(bench.two, name, version)
  if new then broken("%s was done", when) end
  if new == nil then broken("%s was answered with nil (%s), and has to be refused: false", when, tostring(problem)) end
end

local laws = {}

local function law(text, try)
  laws[#laws + 1] = { text = text, try = try }
end

law("a record that nobody has written is not there", function(bench)
  for _, name in ipairs { bench:name(), bench:session() } do
    local answer = Bench.look(bench.one, name)
    if answer.text then broken("a look finds %s under '%s'", show(answer.text), name) end
    bench.memory = answer.memory
  end
end)

law("a look finds what was written, to the letter", function(bench)
  for _, name in ipairs { bench:name(), bench:session() } do
    local version, text = bench:must_write(bench.one, name, false, bench:text(name, 'Zoë’s "node" \\ 100 % $1 ?'))
    expect(bench, name, text, version, "after a write")
    version, text = bench:must_write(bench.two, name, version, bench:text(name, ("long "):rep(LONG_TEXT / 5)))
    expect(bench, name, text, version, "after a write of 3,000 letters")
  end
end)

law("a new record takes the place of no other one", function(bench)
  for _, name in ipairs { bench:name(), bench:session() } do
    local version, text = bench:must_write(bench.one, name, false)
    refused(bench, name, false, "a second write of a new record under one name, with version = false (crown.oracle.cas: nil),")
    expect(bench, name, text, version, "after a write that was refused")
  end
end)

law("a write over an older version changes nothing, and no version comes twice", function(bench)
  for _, name in ipairs { bench:name(), bench:session() } do
    local version, text = bench:must_write(bench.one, name, false)
    local before, seen = {}, { [version] = true }
    for _ = 1, WRITES do
      before[#before + 1] = version
      version, text = bench:must_write(bench.one, name, version)
      if seen[version] then broken("version %s came a second time", show(version)) end
      seen[version] = true
    end
    for _, old in ipairs(before) do
      refused(bench, name, old, ("a write over version %s, where %s stands,"):format(show(old), show(version)))
    end
    expect(bench, name, text, version, "after a write over an older version")
  end
end)

law("a write over a version makes no record where there is none", function(bench)
  local other, name = bench:name(), bench:name()
  local version = bench:must_write(bench.one, other, false)
  refused(bench, name, version, "a write over a version, where no record is,")
  expect(bench, name, false, nil, "after that")
end)

-- One round: several tasks write over one version at once.
local function race(bench, name, version)
  local written, left, unknown = {}, 2 * WRITERS, 0
  for i = 1, 2 * WRITERS do
    core.spawn(function()
      local fine, new, text = pcall(bench.write, bench, i % 2 == 0 and bench.one or bench.two, name, version)
      if fine and new then written[#written + 1] = { version = new, text = text } end
      if not fine or new == nil then unknown = unknown + 1 end
      left = left - 1
    end)
  end
  while left > 0 do core.sleep(0.001) end
  return written, unknown
end

law("of several who write over one version at once, one succeeds", function(bench)
  local name, version = bench:name(), false
  for _ = 1, ROUNDS do
    local written, unknown = race(bench, name, version)
    if #written > 1 then
      broken("%d of %d writes over version %s succeeded: comparing and writing have to be one step in the server", #written,
        2 * WRITERS, show(version))
    end
    local answer = Bench.look(bench.one, name)
    if #written == 0 and unknown == 0 then broken("all of %d writes over version %s were refused", 2 * WRITERS, show(version)) end
    if written[1] and answer.text ~= written[1].text then
      broken("one of %d writes at once succeeded, and a look finds another record than its own", 2 * WRITERS)
    end
    version = answer.version
  end
end)

law("a look finds what stood after it was asked", function(bench)
  local name = bench:name()
  local version = bench:must_write(bench.two, name, false)
  for _ = 1, LOOKS do
    Bench.look(bench.one, name)
    core.spawn(function() bench.one:look { name } end) -- a look that is under way answers no later one
    local text
    version, text = bench:must_write(bench.two, name, version)
    local answer = Bench.look(bench.one, name)
    if answer.text ~= text then broken "after another runtime's write a look finds what stood before: an answer was kept" end
  end
end)

law("names are told apart by each letter", function(bench)
  local stem, names, texts = bench:name(), {}, {}
  local long = stem .. ("x"):rep(LONG_NAME - #stem - 1)
  for i, ending in ipairs { "", "-a", "-A", ".a", "_a", "-a1", "-a11" } do names[i] = stem .. ending end
  names[#names + 1], names[#names + 2] = long .. "1", long .. "2"
  for _, name in ipairs(names) do
    if Bench.look(bench.one, name).text then broken("'%s' was never written, and a look finds another name's record", name) end
    texts[name] = select(2, bench:must_write(bench.one, name, false))
  end
  local answers = Bench.look_all(bench.two, names)
  for _, name in ipairs(names) do
    if answers[name].text ~= texts[name] then broken("a look at '%s' finds another record than its own", name) end
  end
end)

law("each of several writes and looks has an answer of its own", function(bench)
  local fresh, stale, missing = bench:name(), bench:name(), bench:name()
  local old = bench:must_write(bench.one, stale, false)
  local now, text = bench:must_write(bench.one, stale, old)
  local fresh_text = bench:text(fresh)
  local answers, problem = bench.one:swap { bench:one_write(fresh, false, fresh_text),
    bench:one_write(stale, old, bench:text(stale)) }
  if not answers then Bench.silent(problem) end
  if not answers[1] or answers[2] ~= false then
    broken("of two writes the first one had to succeed and the second one to be refused; the answers were %s and %s",
      show(answers[1]), show(answers[2]))
  end
  local found = Bench.look_all(bench.two, { fresh, missing, stale })
  if found[fresh].text ~= fresh_text or found[missing].text or found[stale].text ~= text or found[stale].version ~= now then
    broken "one look at three names mixes up their records"
  end
end)

law("each record's name is told", function(bench)
  if not bench.one.names then Bench.untried "there is no function `names`, so `info` cannot list elections" end
  local name = bench:name()
  bench:must_write(bench.one, name, false)
  local names, problem = bench.two:names()
  if not names then Bench.silent(problem) end
  for _, one in ipairs(names) do
    if one == name then return end
  end
  broken("`names` does not tell '%s', which was written", name)
end)

law("a write that names another memory changes nothing", function(bench)
  local name = bench:name()
  local version, text = bench:must_write(bench.one, name, false)
  local memory = Bench.look(bench.two, name).memory
  if type(memory) ~= "string" then broken("a look answered with memory = %s: a text is expected", show(memory)) end
  if memory == "" then Bench.untried "the store does not tell one memory from another: a record that is missing is doubted" end
  local write = bench:one_write(name, version, bench:text(name))
  write.memory = memory:reverse() .. "x"
  local answers = bench.two:swap { write }
  if answers and answers[1] then broken "it was done" end
  expect(bench, name, text, version, "after that")
end)

law("who listens is told of a change", function(bench)
  if not bench.two.hear or bench.two.deaf then
    Bench.untried "the store tells no changes: followers ask again each second"
  end
  local name, heard = bench:name(), false
  bench.two:hear(function(changed) heard = heard or changed == name end)
  local version, until_then = false, core.now() + HEARD_WITHIN
  repeat
    Bench.look(bench.two, name)
    version = bench:must_write(bench.one, name, version)
    core.sleep(0.1)
    if heard then return end
  until core.now() >= until_then
  broken("another runtime has written for %d s, and `hear` told nothing", HEARD_WITHIN)
end)

return laws
