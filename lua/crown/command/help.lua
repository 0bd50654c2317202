--- Help that teaches: what there is, and what to try first.
-- @internal crown.command.help

local cli = require "crown.command.cli"
local output = require "crown.command.output"
local usage = require "crown.check.usage"

local help = {
  summary = "show this help: crown-lua help COMMAND",
  usage = "crown-lua help [COMMAND | oracles]",
  most_words = 1,
  options = { { name = "man", help = "as a manual page: crown-lua help --man [COMMAND | crown-lua.3] | man -l -" } },
  help = [[
Without COMMAND: the list of commands and the options that all of them take.

  crown-lua help run        what a command does, and its options
  crown-lua help oracles    the URL of each kind of store]],
}

local INTRODUCTION = [[
crown-lua runs a child process, or Lua handlers, on exactly one of several candidates, for as
long as that one leads.

Usage:
  crown-lua [OPTIONS] APP.lua [ARG...]      run an app
  crown-lua COMMAND [OPTIONS] ...
]]

local EXAMPLE = [[

An app, reports.lua:
  local crown = require "crown"
  crown.elect { name = "reports", child = { "/usr/bin/report-worker" } }

Try it: start `crown-lua reports.lua` twice; stop the one that leads.

More: crown-lua help COMMAND; crown-lua help oracles, for the stores. The pages, with a tutorial,
examples, and how to move in from another lock, are in share/doc/crown-lua/docs.]]

local function print_options(list)
  for _, option in ipairs(list) do
    local left = "--" .. option.name .. (option.value and (" " .. option.value) or "")
    local env = option.env and (" [env " .. option.env .. "]") or ""
    output.line(("  %-22s %s%s"):format(left, cli.explain(option), env))
  end
end

local function overview()
  local command = require "crown.command"
  output.line(INTRODUCTION)
  output.line "Commands:"
  for _, name in ipairs(command.verbs) do
    output.line(("  %-22s %s"):format(name == "app" and "APP.lua" or name, command.module(name).summary))
  end
  output.line "\nOptions:"
  print_options(command.common)
  output.line(EXAMPLE)
end

--- The verb.
-- @tparam table options `man`
-- @tparam table words the command to explain
-- @bool bare nothing at all was asked for: that is wrong usage
function help.run(options, words, bare)
  local command = require "crown.command"
  local name = words[1]
  if options.man then
    local text = require("crown.command.manual").page(name or "crown-lua.1")
    if not text then usage.error("help: there is no page '%s'", name) end
    output.write(text)
    return 0
  end
  if not name then
    overview()
    return bare == true and 2 or 0
  end
  if name == "oracles" then
    require("crown.command.oracle_urls").show()
    return 0
  end
  for _, verb in ipairs(command.verbs) do
    if verb == name then
      local module = command.module(name)
      output.line(module.summary .. "\n\nUsage:\n  " .. module.usage .. "\n\n" .. module.help)
      if module.options then
        output.line "\nOptions:"
        print_options(module.options)
      end
      output.line "\nCommon options:"
      print_options(command.common_of(name))
      return 0
    end
  end
  usage.error("help: there is no command '%s'%s; crown-lua help lists them", name, usage.suggest(name, command.verbs))
end

return help
