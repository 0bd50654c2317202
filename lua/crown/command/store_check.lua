--- Asks the store of an election what a candidate will need of it, without claiming: for `crown-lua check`.
-- @internal crown.command.store_check

local contract = require "crown.election.contract"
local core = require "crown.core"
local printable = require "crown.text.printable"
local store = require "crown.command.store"

local store_check = {}

-- The step that leads here is none for who is here already.
local function without_itself(problem)
  return (problem:gsub("; crown%-lua check %-%-store [^;]*", ""))
end

-- A server that refuses a connection says so in words alone, which are those of an answer; the next step stands behind them.
local function has_answered(problem, code)
  local words = problem:match "^(.*); " or problem
  return code == "usage" or contract.is_answer(code) or core.advice(words, "", false, true, true) ~= nil
end

local function ask(word, oracle, fn, opts)
  if not oracle[fn] then return {} end
  local answer, problem, code = contract.call(word, oracle, fn, opts)
  if answer == nil then return nil, store.reason(problem, code, opts.url), code end
  return answer
end

-- Each once: two records may be hurt by the same hand.
local function add_problems(list, more)
  local told = {}
  for _, text in ipairs(more) do
    text = without_itself(text)
    if not told[text] then told[text], list[#list + 1] = true, text end
  end
end

-- Rights come first: who lacks one may be refused everything else too.
-- @return true; or nil, message, code, and what was not answered where something was
local function ask_all(word, oracle, opts, found)
  local rights, problem, code = ask(word, oracle, "rights", opts)
  if not rights then return nil, problem, code end
  local warning = rights.warning
  found.unchecked, rights.unchecked, rights.warning = rights.unchecked, nil, nil
  if not oracle.rights then found.unchecked = "what this candidate may write: this oracle cannot be asked without claiming" end
  found.problems = rights
  local health
  health, problem, code = ask(word, oracle, "health", opts)
  if health then found.facts, found.warnings = health.facts or {}, health.warnings or {} end
  for _, fact in ipairs(found.facts) do fact[2] = without_itself(fact[2]) end
  found.ttl = health and health.fixed and health.ttl or nil
  if warning then table.insert(found.warnings, warning) end
  if #rights == 0 then add_problems(rights, health and health.problems or {}) end
  if #rights > 0 then return true end
  if not health then return nil, problem, code, oracle.rights and "how it is" end
  local listed
  listed, problem, code = ask(word, oracle, "list", opts)
  return listed and true, problem, code, (oracle.rights or oracle.health) and "who leads"
end

-- A store that has answered one question is not silent, also where it takes too long for another one.
local function fail(found, problem, code, unanswered)
  local text = without_itself(core.redact(problem))
  local has_said_no = has_answered(problem, code)
  if unanswered and not has_said_no then text = ("the store answers, but does not say %s: %s"):format(unanswered, text) end
  found.reached, found.problems = has_said_no or unanswered ~= nil, { text }
end

--- Asks the store.
-- @string word the oracle's name in messages
-- @tparam table oracle its module
-- @tparam table opts its options
-- @treturn table `{ facts =, warnings =, problems = }`: pairs of words, and arrays of texts; `unchecked`: what the store does not
-- tell, or nil; `ttl` where the store has one that counts for all; `reached = false` where it gave no answer, nil where it was
-- not asked
function store_check.ask(word, oracle, opts)
  local found = { facts = {}, warnings = {}, problems = {}, reached = true }
  if not (oracle.health or oracle.list or oracle.rights) then
    found.unchecked, found.reached = "whether the store answers: this oracle cannot be asked without claiming", nil
    return found
  end
  local fine, problem, code, unanswered = ask_all(word, oracle, opts, found)
  if not fine then fail(found, problem, code, unanswered or nil) end
  return found
end

--- The same, as lines for people.
-- @tparam table found of store_check.ask
-- @treturn string
function store_check.text(found)
  local lines = {}
  local function line(word, text) lines[#lines + 1] = ("%-15s%s"):format(word, printable(tostring(text))) end
  for _, fact in ipairs(found.facts) do line(fact[1]:lower(), fact[2]) end
  for _, warning in ipairs(found.warnings) do line("warning", warning) end
  for _, problem in ipairs(found.problems) do line("PROBLEM", problem) end
  if found.unchecked then line("not checked", found.unchecked) end
  if found.reached and #found.problems == 0 then
    line("answer", found.unchecked and "the store answers" or "the store answers, and lets this candidate take part")
  end
  return table.concat(lines, "\n") .. "\n"
end

return store_check
