--- Which mutants an operator of tools/slips makes: those need no line in the list.
local generate = require "slips.generate"
local list = require "mutants.list"
local slip = require "slips.slip"
local sources = require "slips.sources"

local SIMULATIONS = { "^register:", "^registry:", "^simulate:" } -- they break the code by the list

local function of_simulation(record)
  for _, pattern in ipairs(SIMULATIONS) do
    if record.by and record.by:find(pattern) then return true end
  end
  return false
end

local function is_only_one(record, counts)
  for _, rule in ipairs(record.breaks) do
    if rule ~= "-" and counts[rule] == 1 then return true end
  end
  return false
end

local function same_text(a, b) return a:gsub("%s+", "") == b:gsub("%s+", "") end

--- @tparam table records all of them
-- @treturn function of a record and the text of its file: the operator that makes it; nil where none does, or where the list
-- has to have it all the same
return function(records)
  local counts, slips = {}, {}
  for _, record in ipairs(records) do
    for _, rule in ipairs(record.breaks) do counts[rule] = (counts[rule] or 0) + 1 end
  end
  return function(record, text)
    local language = sources.language(record.file)
    if not language or of_simulation(record) or is_only_one(record, counts) then return nil end
    slips[record.file] = slips[record.file] or generate(text, language)
    local first, last = list.place(record, text)
    local broken = list.apply(record, text)
    for _, one in ipairs(slips[record.file]) do
      if one.at <= last and one.at + one.length - 1 >= first and same_text(slip.apply(one, text), broken) then
        return one.operator
      end
    end
  end
end
