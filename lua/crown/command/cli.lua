--- Reads a command line by a table of options: `{ name =, value =, number =, values =, env =, help =, default = }`; one without
-- `value` is a switch. `many`: it may be given several times, and comes as a list. `default` says in words what holds without
-- the option. `number` is true or a rule of bounds (crown.check.schema). `problem(text)` says what is wrong with a value, or
-- returns nil. `never_empty`: what an empty variable would do to a verb that `of` names. Both `--name VALUE` and `--name=VALUE`
-- do.
-- @internal crown.command.cli

local schema = require "crown.check.schema"
local seconds = require "crown.check.seconds"
local usage = require "crown.check.usage"

local cli = {}

local function by_name(...)
  local known = {}
  for _, list in ipairs { ... } do
    for _, option in ipairs(list) do known[option.name] = option end
  end
  return known
end

--- What an option is for, and what holds without it.
-- @tparam table option
-- @treturn string
function cli.explain(option)
  return option.help .. (option.default and (" (default: %s)"):format(option.default) or "")
end

--- How a verb is written, in one line.
-- @tparam table verb
-- @treturn string
function cli.usage(verb)
  return (verb.usage:gsub("\n%s*", ", or "))
end

--- Reads what stands for an option, or for a word that is like one.
-- @tparam table option
-- @string label what it is called in errors
-- @string text
-- @return the value
function cli.convert(option, label, text)
  if option.number then
    local number = tonumber(text)
    if not number then usage.error("%s: '%s' is not a number%s", label, text, seconds.suggest(text)) end
    local problem = schema.range_problem(number, option.number)
    if problem then usage.error("%s %s", label, problem) end
    schema.warn("command line", label, number, option.number)
    return number
  end
  local wrong = option.problem and option.problem(text)
  if wrong then usage.error("%s: %s", label, wrong) end
  for _, value in ipairs(option.values or {}) do
    if value == text then return text end
  end
  if option.values then
    usage.error("%s: '%s' is not one of %s%s", label, text, table.concat(option.values, ", "),
      usage.suggest(text, option.values))
  end
  return text
end

-- What a word that is no option of ours was to be. There are no short options, but many know others' by heart.
local function meant(word, name, dashed)
  if name then return usage.suggest("--" .. name, dashed) end
  local said = usage.translate(word, dashed)
  if said then return said end
  local letter, long = word:match "^%-(%a)$", {}
  for _, one in ipairs(dashed) do
    if letter and one:sub(3, 3) == letter:lower() then long[#long + 1] = one end
  end
  table.sort(long)
  if not letter or #long == 0 then return usage.suggest("-" .. word, dashed) end
  return (" (options have no short forms here: %s?)"):format(table.concat(long, ", "))
end

-- Reads the option at `at`. @return where to go on
local function read_option(argv, at, known, options, verb)
  local name, value = argv[at]:match "^%-%-([^=]+)=(.*)$"
  name = name or argv[at]:match "^%-%-(.+)$" or (argv[at] == "-h" and "help")
  local option = name and known[name]
  if not option and name and verb and verb.within and by_name(verb.within.options)[name] then
    usage.error("--%s stands before %s: %s", name, verb.name, cli.usage(verb.within))
  end
  if not option then
    local dashed = {}
    for one in pairs(known) do dashed[#dashed + 1] = "--" .. one end
    usage.error("unknown option '%s'%s; crown-lua help%s lists them", argv[at], meant(argv[at], name, dashed),
      verb and " " .. verb.name or "")
  end
  if not option.value then
    if value then usage.error("--%s takes no value", name) end
    options[name] = true
    return at + 1
  end
  if not value then
    at = at + 1
    value = argv[at]
    if not value then usage.error("--%s: a value is missing: --%s %s", name, name, option.value) end
  end
  if value == "" then usage.error("--%s: the value is empty: --%s %s (is a variable not set?)", name, name, option.value) end
  local converted = cli.convert(option, "--" .. name, value)
  if option.many then
    options[name] = options[name] or {}
    table.insert(options[name], converted)
  else
    options[name] = converted
  end
  return at + 1
end

--- Fills in from the environment what the command line does not say.
-- @tparam table list the options there are
-- @tparam table options by name
-- @string verb
function cli.fill_in(list, options, verb)
  for _, option in ipairs(list) do
    local value = option.env and os.getenv(option.env)
    if value == "" and option.never_empty and option.of[verb] and options[option.name] == nil then
      usage.error("%s is set, but empty: %s", option.env, option.never_empty)
    end
    if value and value ~= "" and options[option.name] == nil then
      options[option.name] = cli.convert(option, option.env, value)
    end
  end
end

--- Reads options up to the first word that is none.
-- @tparam table argv the words
-- @number at where to begin
-- @tparam table list the options there are
-- @treturn table the options by name
-- @treturn number where the first other word stands
function cli.parse(argv, at, list)
  local options, known = {}, by_name(list)
  while argv[at] and argv[at]:sub(1, 1) == "-" and argv[at] ~= "--" and argv[at] ~= "-" do
    at = read_option(argv, at, known, options)
  end
  return options, at
end

--- Whether a verb's own words hold a switch, also where one of them is wrong: those before `--` and before another verb's.
-- @tparam table argv the words
-- @number at where they begin
-- @string switch "--json"
-- @tparam table verb its `nested`
-- @treturn boolean
function cli.stands(argv, at, switch, verb)
  for i = at, #argv do
    if argv[i] == switch then return true end
    if argv[i] == "--" or argv[i] == verb.nested then return false end
  end
  return false
end

--- Reads the rest of a verb's command line: options anywhere, up to `--`, or up to the first word of a command.
-- @tparam table argv the words
-- @number at where to begin
-- @tparam table common options of every verb
-- @tparam table verb its `name`, `options`, `most_words` it takes; `command_at`: which word is the first of a command of
-- the user's, whose options are its own; `nested`: a first word from which on everything is another verb's; `within`: the verb
-- that it is nested in
-- @tparam table given what stood before the verb
-- @treturn table the options by name
-- @treturn table the other words
function cli.parse_verb(argv, at, common, verb, given)
  local options, words, known = {}, {}, by_name(common, verb.options or {})
  for name, value in pairs(given) do options[name] = value end
  while argv[at] do
    if #words == 0 and argv[at] == verb.nested then
      for i = at, #argv do words[#words + 1] = argv[i] end
      break
    elseif argv[at] == "--" or #words + 1 == verb.command_at and argv[at]:sub(1, 1) ~= "-" then
      if argv[at] ~= "--" then at = at - 1 end
      for i = at + 1, #argv do words[#words + 1] = argv[i] end
      break
    elseif argv[at]:sub(1, 1) == "-" and argv[at] ~= "-" then
      at = read_option(argv, at, known, options, verb)
    else
      words[#words + 1] = argv[at]
      at = at + 1
    end
  end
  local surplus = verb.most_words and words[verb.most_words + 1]
  if surplus then usage.error("%s: '%s' is one word too many: %s", verb.name, surplus, cli.usage(verb)) end
  return options, words
end

return cli
