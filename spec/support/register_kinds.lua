--- What goes wrong in support.register_world, by the kind of a world.
local pairs = require("support.ordered_pairs").pairs

local RUNTIMES = { kill = 16, host = 8, cut = 9, stop = 6, want = 12, direct = 17, order = 12 }

local function faults_with(more)
  local all = {}
  for name, weight in pairs(RUNTIMES) do all[#all + 1] = { name, weight } end
  for name, weight in pairs(more) do all[#all + 1] = { name, weight } end
  table.sort(all, function(a, b) return a[1] < b[1] end)
  return all
end

return {
  -- A store that forgets nothing.
  remembers = { faults = faults_with {} },
  -- One that names its memory, and forgets in every way.
  forgets = { faults = faults_with { delete = 2, delete_session = 1, restore = 12, empty = 2 } },
  -- One that does not name its memory: all that was written last is gone, and all who live know better.
  nameless = { faults = faults_with { back = 40, delete = 4 }, nameless = true, sharded = false },
  -- Clocks and TTLs are as far apart as they may be, and leaders are cut off.
  drift = { faults = { { "cut", 1 } }, drift = true, noisy = false, fine = true, eager = true, sharded = false, mixed = true },
  -- Answers come late, and looks are not atomic.
  late = { faults = { { "cut", 3 }, { "want", 1 } }, noisy = true, split = true, fine = true, eager = true, brief = true, pause = 8 },
  -- Requests are done twice, by candidates that come and go.
  twice = { faults = { { "want", 3 }, { "cut", 1 } }, noisy = true, twice = 0.5, brief = true },
  -- Elections' records are lost, or written by others, while their leader sees nothing but its own session.
  blind = { faults = { { "cut", 6 }, { "delete", 3 }, { "want", 1 } }, noisy = false, sharded = true, blind = true, fine = true },
  -- Three servers, of which each forgets, is cut off and late by itself.
  several = { faults = faults_with { delete = 1, delete_session = 1, restore = 4, empty = 1 }, servers = 3 },
  -- One that keeps a mark of what is deleted; some names are new.
  marks = { faults = faults_with { delete = 2, delete_session = 1, delete_place = 1, restore = 8, restart = 4, empty = 1 },
    marks = true, sharded = false, names = { "a", "b", "c", "d", "e" } },
  -- Two that nobody empties, as some of the candidates trust; the second one restarts, and keeps marks.
  trusts = { faults = faults_with { want = 30, kill = 30 }, trusts = true, names = { "a", "b", "c", "d" } },
  trusting = { faults = faults_with { want = 30, kill = 30, delete = 2, delete_place = 1, restart = 2 }, trusts = true,
    marks = true, sharded = false, names = { "a", "b", "c", "d" } },
  -- One whose records all have one memory: who finds another one there waits for one TTL.
  whole = { faults = { { "unclaim", 5 }, { "restore", 4 }, { "cut", 5 }, { "want", 8 }, { "restart", 1 } }, whole = true,
    sharded = false, mixed = false, floor = 12 },
  -- One that also keeps marks.
  wholly = { faults = faults_with { delete = 1, delete_session = 1, delete_place = 1, restore = 12, restart = 6, empty = 1 },
    whole = true, marks = true, sharded = false, names = { "a", "b", "c", "d" } },
  -- Runtimes that give back all that they lead, by one write.
  ends = { faults = faults_with { ends = 60, delete = 1, restore = 3 }, ends = true, many = 2, names = { "a", "b", "c" } },
  -- Runtimes that are killed, and whose supervisors say then that their sessions are over.
  wills = { faults = faults_with { kill = 60, restore = 3 }, wills = true },
  -- One that tells of each write what it was: late, twice, in any order, or not at all.
  news = { faults = faults_with { delete = 1, restore = 6, empty = 1 }, news = true },
  -- One that does so, does not name its memory, and forgets.
  stale = { faults = faults_with { back = 40, delete = 4 }, news = true, nameless = true, sharded = false },
  -- One whose clock is wrong.
  aged = { faults = faults_with {}, aged = true },
  -- Two nodes that fail apart, between which names move.
  cluster = { faults = faults_with { delete = 1, delete_session = 1, restore = 9, empty = 1, restart = 3, move = 12 }, sharded = true,
    cluster = true },
  -- Beside peers that write no records, and live by the store's clock.
  peers = { faults = faults_with { peer = 60 }, peers = true, sharded = false, pause = 8 },
  -- One that says whether records stand as they were written.
  confirms = { faults = faults_with { delete = 3, restore = 8 }, same = true, sharded = false },
  -- Commands that are run once in a period, and fail now and then.
  runs = { faults = faults_with { ends = 4 }, jobs = true, timed = false },
  -- Commands that are due every few seconds, and run once each time, on a host that is preferred where that lives.
  occurrences = { faults = faults_with { ends = 4 }, jobs = true, slot = 5, yields = 2.5, timed = false },
  -- Candidates with preferences: some of them ask for the election, and are asked for it.
  preferred = { faults = faults_with { restore = 2 }, preferred = true },
  -- The same on three servers.
  prefers = { faults = faults_with {}, preferred = true, servers = 3 },
  -- Candidates that are healthy or not, of which some lead as a last resort, and which may have preferences.
  healthy = { faults = faults_with { sick = 60, restore = 2 }, healthy = true },
  -- Shares of one work, which are to be spread evenly over those that live.
  shared = { faults = faults_with { restore = 1 }, shares = true, names = { "a", "b", "c", "d", "e", "f", "g" }, jobs = false },
  -- A store that restarts with all that it had, under one that leads: no term ends.
  restarts = { faults = { { "restart", 1 } }, noisy = false, fine = true, split = false, restarts = true, pause = 200 },
}
