--- Loads an app, validates every option, campaigns for nothing, and shows each election's timing.
-- @internal crown.command.check

local app = require "crown.command.app"
local campaigns = require "crown.core.election"
local cli = require "crown.command.cli"
local core = require "crown.core"
local failover = require "crown.election.failover"
local figure = require "crown.check.figure"
local is_program = require "crown.command.is_program"
local json = require "crown.text.json"
local laws = require "crown.command.laws"
local oracle = require "crown.election.contract"
local output = require "crown.command.output"
local rules = require "crown.election.rules"
local run = require "crown.command.run"
local settings = require "crown.election.settings"
local store = require "crown.command.store"
local store_check = require "crown.command.store_check"
local usage = require "crown.check.usage"

local check = {
  summary = "load an app and validate it; campaign for nothing",
  usage = "crown-lua check [OPTIONS] APP.lua [ARG...]\n  crown-lua check [OPTIONS] run [OPTIONS OF run] NAME COMMAND [ARG...]\n"
    .. "  crown-lua check [OPTIONS] --laws",
  nested = "run",
  options = {
    { name = "json", help = "for programs" },
    { name = "store", help = "ask the store too: is it there, may this candidate take part" },
    { name = "laws", help = "try a store of your own, which --oracle names: may it decide who leads" },
  },
  help = [[
Prints for each election its timing (TTL, refresh, stop_timeout, margin, deadline), and why no
two leaders can overlap. It also says who may lead and when, what happens when the leader dies,
and how long a failover takes at worst. It refuses timing that could overlap, and shows the sum.
With `run` it checks what would follow `crown-lua`.

--store connects to the store, as a candidate would, and shows its settings and what this
candidate lacks to take part; it claims nothing and leaves nothing behind. Exit code 2 when
anything is wrong, 3 when the store gives no answer.

--laws is for authors of an oracle on crown.oracle.cas, or of a driver. It needs no app.
It writes and reads records of its own, tries each law that the store has to keep, and says in
words which one is broken. It takes some ten seconds, and touches no election.]],
}

local function indent(text)
  return (text:gsub("([^\n]+)", "  %1"))
end

-- Where a child finds modules: it may start in a directory of its own.
local function from(directory, path)
  return directory and (";" .. path):gsub(";([^/;][^;]*)", ";" .. directory:gsub("%%", "%%%%") .. "/%1"):sub(2) or path
end

-- What require has to say before it would run the module of a child of Lua's.
local function load_only(name)
  for _, loader in ipairs(package.loaders) do
    local fine, found = pcall(loader, name)
    if not fine then return ("Lua module '%s': %s"):format(name, (tostring(found):gsub("^.-:%s*\n%s*", ""))) end
    if type(found) == "function" then return end
  end
  return ("there is no Lua module '%s' here that require would find"):format(name)
end

local function module_problem(spec)
  local path, cpath = package.path, package.cpath
  package.path, package.cpath = from(spec.cwd, path), from(spec.cwd, cpath)
  local problem = load_only(spec.lua)
  package.path, package.cpath = path, cpath
  return problem
end

-- Problems of an election that only this host can see, such as a program that is missing.
local function missing_program(election)
  for _, which in ipairs { "child", "follower_child" } do
    local spec = election.options[which]
    local problem = spec and spec.lua and module_problem(spec)
    if spec and not spec.lua and not is_program(spec.argv[1], spec.env and spec.env.PATH, spec.cwd) then
      problem = ("there is no program '%s' here that could be executed"):format(spec.argv[1])
    end
    if problem then return ("elect '%s': %s: %s"):format(election.name, which, problem) end
  end
end

local function warnings_of(election)
  local warnings = election.common.module.warnings
  return warnings and election.state ~= oracle.IGNORE and warnings(election.state) or {}
end

local ANYBODY = "any candidate, at any time"

local function death_of(election)
  return rules.death(election.rules, election.timing.text:match "failover +at most ([%d.]+ s) after a leader dies")
end

local function describe(election)
  local spec = election.options
  local child = "none"
  if spec.child then child = spec.child.lua and "Lua module " .. spec.child.lua or table.concat(spec.child.argv, " ") end
  if spec.child and spec.child.watchdog then
    child = ("%s, stopped when it does not say WATCHDOG=1 for %s s"):format(child, figure.exact(spec.child.watchdog))
  end
  local text = ("election       %s\noracle         %s\nchild          %s\n%s"):format(election.name, spec.oracle,
    core.redact(child), election.timing.text)
  local words = rules.words(election.rules)
  if not words[1] then words[1] = ANYBODY end
  for _, one in ipairs(words) do text = text .. "\nwho leads      " .. one end
  for _, one in ipairs(death_of(election)) do text = text .. "\nat its death   " .. one end
  for _, warning in ipairs(warnings_of(election)) do text = text .. "\nwarning        " .. warning end
  return text
end

-- A verb in the place of an app, where no file has that name.
local function refuse_verb(word)
  local file = io.open(word)
  if file then return file:close() end
  if word == "cron" then usage.error "check: a crontab is checked by crown-lua cron --check FILE" end
  for _, verb in ipairs(require("crown.command").verbs) do
    if verb == word then usage.error("check: there is no app '%s' here, and of the verbs only run can be checked", word) end
  end
end

local function declare_app(words, argv)
  refuse_verb(words[1])
  local at
  for i = 1, #argv do
    if argv[i] == words[1] then at = i end
  end
  app.run(at)
  if #settings.declared == 0 then
    usage.error("check: %s declares no election before it waits or ends: see crown.elect", words[1])
  end
end

local function declare_run(options, words)
  local command = require "crown.command"
  run.name, run.within = "run", check
  local given, rest = cli.parse_verb(words, 2, command.common, run, options)
  command.apply(given)
  run.declare(given, rest)
end

-- The store's own TTL counts, whatever the options say: the timing is that of it.
local function go_by_stores_ttl(election, asked)
  local module, spec, opts = election.common.module, election.options, {}
  for name, value in pairs(election.oracle_options) do opts[name] = value end
  local given = module.timing(opts)
  if given == asked.ttl then return end
  opts.ttl = asked.ttl
  local ttl, refresh, cool_down = module.timing(opts)
  local text, timing = campaigns.explain(spec, ttl, refresh, math.max(spec.cool_down, cool_down or 0))
  table.insert(asked.warnings, ("the store's TTL of %s s counts, not the %s s of the options"):format(figure.exact(asked.ttl),
    figure.exact(given)))
  if not text then return table.insert(asked.problems, timing) end
  election.timing = { text = failover(text, module, opts, timing.cool_down), seconds = timing }
end

local function ask_store(election)
  if election.state == oracle.IGNORE then return nil end
  local module = election.common.module
  local asked = store_check.ask(election.options.oracle, module, election.oracle_options)
  if asked.ttl and module.timing then go_by_stores_ttl(election, asked) end
  return asked
end

-- An app that does not load is an entry with nothing but its error, behind the elections that it declared before.
local function for_programs(elections, failure)
  local list = {}
  for i, election in ipairs(elections) do
    list[i] = { name = election.name, oracle = election.options.oracle, timing = election.timing.seconds,
      explanation = election.timing.text, rules = rules.words(election.rules), death = death_of(election),
      warnings = warnings_of(election), store = election.asked, error = election.problem }
  end
  list[#list + 1] = failure and { error = failure }
  return json.line(list, "rules", "death", "warnings", "facts", "problems")
end

local function report_of(election)
  local text = indent(describe(election))
  return election.asked and ("%s\n%s"):format(text, indent(store_check.text(election.asked))) or text
end

-- Those of which there is nothing else to say than of the one before: slots and shares are up to a thousand.
local function tell_of_alike(names)
  if not names[1] then return end
  output.line(indent(("%s%s: as the one above"):format(names[1], names[2] and " to " .. names[#names] or "")))
end

local function for_people(elections, what)
  local before, alike = nil, {}
  for _, election in ipairs(elections) do
    local text = report_of(election)
    local rest = text:gsub("^[^\n]*", "")
    if rest == before then
      alike[#alike + 1] = election.name
    else
      tell_of_alike(alike)
      output.line(text)
      before, alike = rest, {}
    end
  end
  tell_of_alike(alike)
  return ("%s: %d election%s"):format(what, #elections, #elections == 1 and "" or "s")
end

local WRONG = 2

-- 0 nothing wrong, 2 something is, 3 a store gave no answer.
local function judge(elections)
  local code = 0
  for _, election in ipairs(elections) do
    local asked = election.asked
    if asked and asked.reached == false then return store.UNREACHABLE end
    if election.problem or asked and #asked.problems > 0 then code = WRONG end
  end
  return code
end

local function look(options, words, argv)
  if not words[1] then usage.error("check: name an app, or `run` and what follows it: %s", cli.usage(check)) end
  settings.checking = true
  if words[1] == check.nested then declare_run(options, words) else declare_app(words, argv) end
  for _, election in ipairs(settings.declared) do
    election.problem = missing_program(election)
    if election.problem and not options.json then usage.error("%s", election.problem) end
    if options.store then election.asked = ask_store(election) end
  end
  return judge(settings.declared)
end

local function message_of(problem)
  if type(problem) == "table" and problem.message then return problem.message end
  return problem == nil and "the app ended by an error without a text" or usage.one_line(problem)
end

--- Answers `--json` where the command line or the app is wrong.
-- @param problem the error
-- @treturn number the exit code
function check.refused(problem)
  output.write(for_programs(settings.declared, core.redact(message_of(problem))))
  return WRONG
end

--- The filter of the log while `check` runs. It leaves out the events of connections: the report names what a connection tells,
-- and a trial of the laws breaks connections on purpose.
-- @treturn string as --log-filter takes it
function check.log_filter() return "oracle.=off" end

--- The verb.
function check.run(options, words, argv)
  if options.laws then
    if words[1] or options.store then usage.error "check: --laws takes no app, and no --store: it tries the store of --oracle" end
    return laws.run(options.json)
  end
  local code = look(options, words, argv)
  if options.json then
    output.write(for_programs(settings.declared))
    return code
  end
  local summary = for_people(settings.declared, words[1])
  output.line(summary .. (code == 0 and ", nothing wrong" or code == WRONG and ", not as it should be"
    or ", a store gives no answer"))
  return code
end

return check
