--- Answers that cost much to make: one making serves all who ask while it lasts, so that however many ask, and however often,
-- a small part of one core is spent.
-- @internal crown.web.kept

local core = require "crown.core"
local Shared = require "crown.link.shared"

local kept = {}

local TIMES, MOST = 50, 5 -- an answer lasts for so many times what it took, and for so many seconds at most

local entries = {}

local function entry(key, make, least)
  local one = {}
  one.run = Shared.new(function()
    local began = core.now()
    one.answer = { make() }
    local lasts = math.max(math.min(TIMES * (core.now() - began), MOST), least or 0)
    core.detach(function()
      core.sleep(lasts)
      entries[key] = nil
    end)
    return one.answer
  end)
  return one
end

--- An answer, made now or a moment ago.
-- @string key what it answers
-- @tparam function make returns it; may take long
-- @number[opt] least seconds that it lasts, also where it took no time
-- @return what make returned
-- @raise what make raised
function kept.get(key, make, least)
  local one = entries[key] or entry(key, make, least)
  entries[key] = one
  local answer, problem = one.answer, nil
  if not answer then answer, problem = one.run:ask() end
  if not answer then error(problem, 0) end
  return unpack(answer)
end

return kept
