--- The command: finds the verb, reads the common options, runs it. Each verb is a module of its own,
-- `crown.command.VERB`, with `summary`, `usage`, `help`, `options` and `run(options, words)`.
-- @internal crown.command

local cli = require "crown.command.cli"
local core = require "crown.core"
local election_options = require "crown.election.options"
local files = require "crown.core.files"
local output = require "crown.command.output"
local settings = require "crown.election.settings"
local usage = require "crown.check.usage"
local version = require "crown.command.version"

local command = {}

--- The verbs, in the order in which help lists them.
command.verbs = { "app", "run", "file", "cron", "check", "info", "evict", "pause", "resume", "handover", "redo", "status",
  "history", "abdicate", "log-level", "completion", "help" }

-- The verbs that some options are for, and what to say at the others.
local CANDIDATES = { app = true, run = true, file = true, cron = true, check = true,
  words = "it is for candidates: APP.lua, run, file, cron, check" }
local STORES = { app = true, run = true, file = true, cron = true, check = true, info = true, evict = true,
  pause = true, resume = true, handover = true, redo = true, history = true,
  words = "it is for APP.lua, run, file, cron, check, info, evict, pause, resume, handover, redo and history" }

--- Options that every verb takes, or those that `of` names.
command.common = {
  { name = "oracle", value = "URL", env = "CROWN_ORACLE", of = STORES,
    never_empty = "each host would elect for itself; set it to the store's URL, or unset it to elect on this host alone",
    help = "the store that decides who leads", default = "locks in a directory of yours, for this host alone" },
  { name = "node", value = "NAME", env = "CROWN_NODE", of = CANDIDATES, problem = election_options.node_problem,
    help = "this candidate's name", default = "the host's" },
  { name = "ttl", value = "SECONDS", number = { above = 0, most = 31536000 }, of = CANDIDATES,
    help = "how long a lease lasts, where an app's oracle does not say it itself", default = "the oracle's" },
  { name = "log-level", value = "LEVEL", env = "CROWN_LOG_LEVEL", values = { "debug", "info", "warn", "error" },
    help = "debug, info, warn or error", default = "info; of run, warn" },
  { name = "log-format", value = "FORMAT", env = "CROWN_LOG_FORMAT", values = { "text", "logfmt", "json" },
    help = "text, logfmt or json", default = "text" },
  { name = "log-filter", value = "LIST", env = "CROWN_LOG_FILTER",
    help = "levels, or off, by the beginning of a message: leadership=debug,child=off", default = "none" },
  { name = "heartbeat", value = "SECONDS", number = { least = 0.5, most = 3600 }, env = "CROWN_HEARTBEAT", of = CANDIDATES,
    help = "restart a runtime that is silent for so long", default = "2" },
  { name = "http", value = "ADDR:PORT", env = "CROWN_HTTP", of = CANDIDATES,
    problem = function(where) return require("crown.web").problem(where) end,
    help = "serve metrics, health and a status page; loopback unless ADDR says otherwise", default = "nothing is served" },
  { name = "keep", of = CANDIDATES, help = "go on when the terminal is gone; COMMAND of run does not get the terminal" },
  { name = "help", help = "show this help" },
  { name = "version", help = "show the version" },
  { name = "verbose", help = "with --version: also how it was built, and with which libraries" },
}

--- The options of command.common that a verb takes.
-- @string verb
-- @treturn table an array
function command.common_of(verb)
  local taken = {}
  for _, option in ipairs(command.common) do
    if not option.of or option.of[verb] then taken[#taken + 1] = option end
  end
  return taken
end

local function has_own(verb, name)
  for _, option in ipairs(verb.options or {}) do
    if option.name == name then return true end
  end
  return false
end

-- What the command line says in vain would be missed where it is meant. The environment speaks to all verbs.
local function refuse_in_vain(verb, given)
  for _, option in ipairs(command.common) do
    local is_vain = given[option.name] ~= nil and option.of and not option.of[verb.name]
    if is_vain and not has_own(verb, option.name) then
      usage.error("%s: --%s has no effect here: %s", verb.name, option.name, option.of.words)
    end
  end
end

--- Begins to serve the HTTP endpoint, where one is asked for; only for verbs that hold elections.
-- @tparam table options as cli.parse returns them
function command.serve(options)
  if options.http then require("crown.web").serve(options.http) end
end

--- Applies the common options to the whole runtime.
-- @tparam table options as cli.parse returns them
-- @string verb
function command.apply(options, verb)
  local set, problem = core.log_setup { level = options["log-level"], format = options["log-format"],
    filter = options["log-filter"] }
  if not set then usage.error("%s", problem) end
  if options.node then core.node(options.node) end
  if options.heartbeat then core.heartbeat(options.heartbeat) end
  if options.keep and CANDIDATES[verb] then core.keep() end
  settings.oracle, settings.named = options.oracle or settings.oracle, settings.named or options.oracle ~= nil
  settings.ttl = options.ttl or settings.ttl
end

--- The module of a verb: log-level is in log_level.lua.
-- @string verb
-- @treturn table
function command.module(verb)
  return require("crown.command." .. verb:gsub("-", "_"))
end

local function is_verb(word)
  for _, verb in ipairs(command.verbs) do
    if verb == word and verb ~= "app" then return true end
  end
  return false
end

local function unknown(word, problem)
  if not problem:find "No such file" then usage.error("the app cannot be read: %s", problem) end
  if word:find("[./]") then
    usage.error("there is no app '%s': no such file", word)
  end
  local verbs = {}
  for _, verb in ipairs(command.verbs) do verbs[#verbs + 1] = is_verb(verb) and verb or nil end
  usage.error("'%s' is neither a command%s nor a file; crown-lua help lists the commands", word,
    usage.suggest(word, verbs))
end

local function readable(path)
  local file, problem = io.open(path, "rb")
  if not file then return false, problem end
  file:close()
  return true
end

local HEAD = 4096 -- bytes of a file that tell what it is

-- Whether a file is a program or a script of another language: then `run` was forgotten.
local function is_program(path)
  local file = io.open(path, "rb")
  local head = file and file:read(HEAD) or ""
  if file then file:close() end
  if head:find "^#!" then return not head:match("^[^\n]*"):find "lua" end
  return head:find "%z" ~= nil and not head:find "^\27L" -- which compiled Lua begins with
end

-- What is read but once, such as a pipe, is read when it runs.
local function refuse_program(path)
  if files.kind(path) ~= "file" and not files.executable(path) then return end
  local instead = "crown-lua run NAME -- " .. (path:find "/" and path or "./" .. path)
  if is_program(path) then usage.error("'%s' is no app in Lua; to run it on one machine: %s", path, instead) end
  local loaded, problem = loadfile(path)
  if not loaded and not path:find "%.lua$" then usage.error("%s (is it a program? %s)", problem, instead) end
end

-- Reads what stands behind a verb, and applies it.
local function read_verb(verb, argv, at, before)
  local options, words = cli.parse_verb(argv, at + 1, command.common, verb, before)
  if options.help then return options, words end
  refuse_in_vain(verb, options)
  cli.fill_in(command.common, options, verb.name)
  if verb.log_filter and not options["log-level"] and not options["log-filter"] then
    options["log-filter"] = verb.log_filter(options)
  end
  options["log-level"] = options["log-level"] or verb.log_level
  command.apply(options, verb.name)
  return options, words
end

local function carry_out(verb, argv, at, before)
  local options, words = read_verb(verb, argv, at, before)
  if options.help then return require("crown.command.help").run({}, { verb.name }) end
  core.what(verb.name)
  if verb.campaigns then command.serve(options) end
  if not CANDIDATES[verb.name] then core.alone() end
  return verb.run(options, words, argv)
end

local function run(argv)
  local options, at = cli.parse(argv, 1, command.common)
  if options.version then
    return version.run(options.verbose)
  end
  local word = argv[at]
  if options.help or not word then
    return require("crown.command.help").run({}, { is_verb(word) and word or nil }, word == nil and not options.help)
  end
  if not is_verb(word) then
    local fine, problem = readable(word)
    if not fine then unknown(word, problem) end
    refuse_program(word)
    core.what(word:match "[^/]*$")
    cli.fill_in(command.common, options, "app")
    command.apply(options, "app")
    command.serve(options)
    return require("crown.command.app").run(at)
  end
  local verb = command.module(word)
  verb.name = word
  if not (verb.refused and cli.stands(argv, at + 1, "--json", verb)) then return carry_out(verb, argv, at, options) end
  local fine, code = pcall(carry_out, verb, argv, at, options)
  if not fine then return verb.refused(code) end
  return code
end

--- Runs the command line.
-- @tparam table argv the words behind the program's name
-- @treturn number the exit code, or nothing: then the runtime goes on until its last election ended
function command.main(argv)
  local code = run(argv)
  return code and (output.finish(code))
end

return command
