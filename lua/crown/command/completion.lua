--- Shell completion, made of the same tables that help shows.
-- @internal crown.command.completion

local control = require "crown.control"
local past = require "crown.election.history"
local output = require "crown.command.output"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local completion = {
  summary = "print a completion script for bash, zsh or fish",
  usage = "crown-lua completion bash|zsh|fish|names",
  most_words = 1,
  help = [[
  bash   source <(crown-lua completion bash)
  zsh    crown-lua completion zsh > "${fpath[1]}/_crown-lua"
  fish   crown-lua completion fish > ~/.config/fish/completions/crown-lua.fish

`make install` puts all three where the shells look. `names` prints what they complete: the
elections of your runtimes on this host, and those in its history.]],
}

local function verbs()
  local command = require "crown.command"
  local found = {}
  for _, name in ipairs(command.verbs) do
    if name ~= "app" then found[#found + 1] = { name = name, module = command.module(name) } end
  end
  return found, command.common
end

local function words(list, format)
  local out = {}
  for _, option in ipairs(list or {}) do out[#out + 1] = format(option) end
  return table.concat(out, " ")
end

local function name_of(verb)
  return verb.name
end

-- Verbs whose word is the name of an election.
local NAMED = { evict = true, pause = true, resume = true, handover = true, redo = true, abdicate = true, status = true,
  info = true, history = true, run = true }

-- What the first word behind a verb may be, where that is one of a few.
local function choices_of(verb)
  if verb == "log-level" then return { "debug", "info", "warn", "error" } end
  if verb == "completion" then return { "bash", "zsh", "fish", "names" } end
  if verb ~= "help" then return nil end
  local names = {}
  for i, one in ipairs(verbs()) do names[i] = one.name end
  return names
end

local function schemes()
  local list = {}
  for i, scheme in ipairs(url.schemes()) do list[i] = scheme .. ":" end
  return table.concat(list, " ")
end

local function dashed(option)
  return "--" .. option.name
end

-- The options of a verb, its own and those that it shares.
local function options_of(verb)
  local list = {}
  for _, option in ipairs(verb.module.options or {}) do list[#list + 1] = option end
  for _, option in ipairs(require("crown.command").common_of(verb.name)) do list[#list + 1] = option end
  return list
end

local function values_of(lists)
  local found, seen = {}, {}
  for _, list in ipairs(lists) do
    for _, option in ipairs(list or {}) do
      if option.values and not seen[option.name] then
        seen[option.name] = true
        found[#found + 1] = option
      end
    end
  end
  return found
end

local shells = {}

function shells.names()
  local seen, names = {}, {}
  local function add(name)
    if type(name) == "string" and not seen[name] then
      seen[name], names[#names + 1] = true, name .. "\n"
    end
  end
  for _, runtime in ipairs(control.ask_all { ask = "status" }) do
    for _, one in ipairs(runtime.elections or {}) do add(one.name) end
  end
  for _, place in ipairs(control.places()) do
    for _, entry in ipairs(past.read(place)) do add(entry.name) end
  end
  table.sort(names)
  return table.concat(names)
end

-- What bash offers as a verb's words: a case of its own for each kind.
local function bash_words(verb)
  local choices = choices_of(verb.name)
  if choices then return ('COMPREPLY=($(compgen -W "%s" -- "$word"))'):format(table.concat(choices, " ")) end
  if verb.name == "run" then return "_crown_lua_names || COMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))" end
  if verb.name == "check" then return "COMPREPLY=($(compgen -W run -- \"$word\") $(compgen -f -- \"$word\"))" end
  return NAMED[verb.name] and "_crown_lua_names" or 'COMPREPLY=($(compgen -f -- "$word"))'
end

function shells.bash()
  local list, common = verbs()
  local lists, cases, arguments = { common }, {}, {}
  for _, verb in ipairs(list) do
    lists[#lists + 1] = verb.module.options
    cases[#cases + 1] = ('    %s) options="%s" ;;'):format(verb.name, words(options_of(verb), dashed))
    arguments[#arguments + 1] = ("    %s) %s ;;"):format(verb.name, bash_words(verb))
  end
  local values = {}
  for _, option in ipairs(values_of(lists)) do
    values[#values + 1] = ('    --%s) COMPREPLY=($(compgen -W "%s" -- "$word")); return ;;'):format(option.name,
      table.concat(option.values, " "))
  end
  return ([=[
# Completion of crown-lua for bash.
_crown_lua_names() { # the first word behind the verb
  [[ $before == "$verb" || $verb != run || $before == --* ]] || return 1
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completion names 2> /dev/null)" -- "$word"))
}
_crown_lua() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb="" options="@COMMON@" i
  # An equals sign is a word of readline's, and so is a colon: redis:// is three of them.
  if [[ $word == = ]]; then word=""; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  if [[ $word == : || $word == // ]]; then return; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " @VERBS@ " in *" ${COMP_WORDS[i]} "*) verb=${COMP_WORDS[i]}; break ;; esac
  done
  case $before in
    --oracle) COMPREPLY=($(compgen -W "@SCHEMES@" -- "$word")); compopt -o nospace 2> /dev/null; return ;;
@VALUES@
  esac
  case $verb in
@CASES@
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  case $verb in
    "") COMPREPLY=($(compgen -W "@VERBS@" -- "$word") $(compgen -f -X '!*.lua' -- "$word") $(compgen -d -S / -- "$word")) ;;
@ARGUMENTS@
  esac
}
complete -o filenames -F _crown_lua crown-lua
]=]):gsub("@(%u+)@", { VERBS = words(list, name_of), COMMON = words(common, dashed), CASES = table.concat(cases, "\n"),
    VALUES = table.concat(values, "\n"), SCHEMES = schemes(), ARGUMENTS = table.concat(arguments, "\n") })
end

local function quoted(text)
  return (text:gsub("'", "'\\''"):gsub("[%[%]]", "\\%0"):gsub(":", "\\:"))
end

local function zsh_option(option)
  local value = ""
  if option.value then
    local values = option.values and table.concat(option.values, " ") or option.name == "oracle" and schemes():gsub(":", "\\:")
    value = values and (":%s:(%s)"):format(option.value:lower(), values)
      or (":%s:_files"):format(option.value:lower())
  end
  return ("'--%s%s[%s]%s'"):format(option.name, option.value and "=" or "", quoted(option.help), value)
end

-- What zsh offers as a verb's words.
local function zsh_words(verb)
  local choices = choices_of(verb.name)
  if choices then return ("'2:word:(%s)'"):format(table.concat(choices, " ")) end
  if verb.name == "check" then return "'2:app:_crown_lua_app' '*: :_files'" end
  if not NAMED[verb.name] then return "'*: :_files'" end
  local names = "'2:election:($(crown-lua completion names 2> /dev/null))'"
  return verb.name == "run" and names .. " '3:command:_command_names -e' '*: :_files'" or names
end

function shells.zsh()
  local list, common = verbs()
  local names, cases = {}, {}
  for _, verb in ipairs(list) do
    names[#names + 1] = ("'%s:%s'"):format(verb.name, quoted(verb.module.summary))
    cases[#cases + 1] = ("    %s) _arguments '1: :' %s %s ;;"):format(verb.name, words(options_of(verb), zsh_option),
      zsh_words(verb))
  end
  return ([=[
#compdef crown-lua
# Completion of crown-lua for zsh.
_crown_lua_app() {
  compadd run
  _files -g '*.lua'
}
_crown_lua() {
  local -a verbs
  verbs=(@NAMES@)
  local state verb=${words[(r)(@BAR@)]}
  case $verb in
@CASES@
    *) _arguments @COMMON@ '1: :->first' '*: :_files' && return
       [[ $state == first ]] && { _describe command verbs; _files -g '*.lua' } ;;
  esac
}
_crown_lua "$@"
]=]):gsub("@(%u+)@", { COMMON = words(common, zsh_option), NAMES = table.concat(names, " "),
    BAR = words(list, name_of):gsub(" ", "|"), CASES = table.concat(cases, "\n") })
end

local function fish_option(option, condition)
  local take = ""
  if option.values then
    take = (" -x -a '%s'"):format(table.concat(option.values, " "))
  elseif option.name == "oracle" then
    take = (" -x -a '%s'"):format(schemes())
  elseif option.value then
    take = " -r"
  end
  return ("complete -c crown-lua%s -l %s%s -d '%s'"):format(condition, option.name, take,
    (option.help:gsub("'", "\\'")))
end

-- What fish offers as a verb's words; nil: files.
local function fish_words(verb)
  local choices = choices_of(verb.name)
  if choices then return ("-f -a '%s'"):format(table.concat(choices, " ")) end
  if verb.name == "check" then return "-a run" end
  return NAMED[verb.name] and (verb.name == "run" and "" or "-f ") .. "-a '(crown-lua completion names)'" or nil
end

function shells.fish()
  local list, common = verbs()
  local lines = { "# Completion of crown-lua for fish." }
  for _, option in ipairs(common) do lines[#lines + 1] = fish_option(option, " -n __fish_use_subcommand") end
  for _, verb in ipairs(list) do
    lines[#lines + 1] = ("complete -c crown-lua -n __fish_use_subcommand -a %s -d '%s'"):format(verb.name,
      (verb.module.summary:gsub("'", "\\'")))
    local condition = (" -n '__fish_seen_subcommand_from %s'"):format(verb.name)
    local taken = fish_words(verb)
    if taken then lines[#lines + 1] = ("complete -c crown-lua%s %s"):format(condition, taken) end
    for _, option in ipairs(options_of(verb)) do lines[#lines + 1] = fish_option(option, condition) end
  end
  return table.concat(lines, "\n") .. "\n"
end

--- The verb.
function completion.run(_, rest)
  local shell = shells[rest[1] or ""]
  if not shell then usage.error("completion: name a shell: %s", completion.usage) end
  output.write((shell()))
  return 0
end

return completion
