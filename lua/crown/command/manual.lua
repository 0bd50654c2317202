--- Manual pages, made of the same texts that help shows.
-- @internal crown.command.manual

local cli = require "crown.command.cli"
local core = require "crown.core"
local exit_codes = require "crown.command.exit_codes"

local manual = {}

local function escape(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n([.'])", "\n\\&%1"):gsub("^([.'])", "\\&%1"))
end

local function heading(name, section)
  return ('.TH %s %d "" "crown-lua %s" "crown-lua"\n'):format(name:upper():gsub("%-", "\\-"), section, core.version)
end

local function options_of(list)
  if not list or #list == 0 then return "" end
  local lines = { ".SH OPTIONS" }
  for _, option in ipairs(list) do
    lines[#lines + 1] = (".TP\n.B %s%s\n%s%s"):format(escape("--" .. option.name),
      option.value and (" \\fI" .. option.value .. "\\fR") or "", escape(cli.explain(option)),
      option.env and (" (environment: " .. option.env .. ")") or "")
  end
  return table.concat(lines, "\n") .. "\n"
end

local function exit_status()
  local lines = { ".SH EXIT STATUS" }
  for _, one in ipairs(exit_codes) do lines[#lines + 1] = (".TP\n.B %s\n%s"):format(one[1], escape(one[2])) end
  return table.concat(lines, "\n") .. "\n.PP\n.B crown\\-lua run\npasses on any other code of its command.\n"
end

local function see_also(names)
  return ".SH SEE ALSO\n" .. table.concat(names, ",\n") .. "\n"
end

local function verb_page(name, module, common)
  return heading("crown-lua-" .. name, 1) .. (".SH NAME\ncrown\\-lua\\-%s \\- %s\n.SH SYNOPSIS\n.nf\n%s\n.fi\n")
    :format(escape(name), escape(module.summary), escape(module.usage:gsub("\n  ", "\n")))
    .. (".SH DESCRIPTION\n.nf\n%s\n.fi\n"):format(escape(module.help)) .. options_of(module.options)
    .. (options_of(common):gsub("SH OPTIONS", "SH COMMON OPTIONS")) .. exit_status()
    .. see_also { ".BR crown\\-lua (1)", ".BR crown\\-lua (3)" }
end

local function command_page(command)
  local verbs, names = {}, {}
  for _, name in ipairs(command.verbs) do
    local module = command.module(name)
    verbs[#verbs + 1] = (".TP\n.B %s\n%s"):format(escape(name == "app" and "APP.lua" or name), escape(module.summary))
    if name ~= "app" then names[#names + 1] = (".BR crown\\-lua\\-%s (1)"):format(escape(name)) end
  end
  names[#names + 1] = ".BR crown\\-lua (3)"
  local app = command.module "app"
  return heading("crown-lua", 1) .. [[
.SH NAME
crown\-lua \- run a program on exactly one of several machines
.SH SYNOPSIS
.nf
crown\-lua [OPTIONS] APP.lua [ARG...]
crown\-lua COMMAND [OPTIONS] ...
.fi
.SH DESCRIPTION
Several candidates take part in an election; an oracle, such as a lease in Postgres or a lock on this host, decides which of them
leads. The leader runs a child process or Lua handlers, for as long as it leads. Nothing that a leader started runs any more when
the next one begins.
.PP
.nf
]] .. escape(app.help) .. "\n.fi\n.SH COMMANDS\n" .. table.concat(verbs, "\n") .. "\n" .. options_of(command.common)
    .. exit_status() .. see_also(names)
end

-- The API in short; docs/ has it in full.
local API = [[
local crown = require "crown"

crown.elect(options)          declares an election; raises an error that names a wrong option
  name                        letters, digits, '_', and behind the first '.' and '-'
  oracle                      a URL, a module's name, a module, or { module, option = ... }
  node                        this candidate's name, where it is not the runtime's
  child, follower_child       { command = {...} or lua = module, env, cwd, user, group, stdin, stdout, stderr,
                              stop_signal, stop_timeout, mode, told, fence, terminal, isolation,
                              watchdog, restart, log_fields, keep_output }
  restart, of a child         { policy, max, within, backoff }
  handlers                    { init(opts), won(term), lost(reason), leader(name, epoch), campaign(phase) }
  claim_delay, splay, retry, backoff, lease, cool_down, stop_timeout, call_timeout, lost_timeout
                              seconds; backoff: a list of them, or a name
  monitor_leader              whether a follower claims when the leader's lease ends (true)
  never                       true: this candidate only follows
  healthy                     a function, { exec = {...} } or { http = URL }, with every, timeout, fail, pass:
                              it leads only while that passes
  last_resort                 true: with healthy, it leads though it is unhealthy where nobody else does
  preference, preference_wait of those that wait a higher one leads first; for so many seconds lower ones leave it that
  preempt                     seconds after which it asks a leader of a lower preference to go
  slots                       so many nodes lead at once, each one of NAME.1, NAME.2 ... (CROWN_SLOT)
  shares                      so many of them are spread evenly over the nodes, NAME.1, NAME.2 ... (CROWN_SHARE)
  window                      "Mon-Fri 08:00-18:00 Europe/Berlin", or a list: it leads only then

crown.shares(options)         the same with shares = count, 64 by default; :held() has the numbers that are led here

election:status()             phase, leader, epoch, expires_in, term, barred, rules
election:is_leader() :send(message) :abdicate() :stop()
term.epoch, term.name, term:remaining(), term:valid()

crown.sleep(s) .spawn(fn, ...) .now() .on(event, fn) .log.info(text, fields) .json.encode/decode
crown.tcp.connect(host, port, options) .listen(host, port, fn)
crown.http.request { url = ..., method, headers, body, timeout }
crown.postgres.connect(url)   :query(sql, ...), :listen(channel, fn), :close()
crown.redis.connect(url)      :call(word, ...), :subscribe(channel, fn), :close()
crown.exec({ argv }, options) .watch_file(path, fn) .node .token .version .IGNORE

An oracle is a module with init(opts), claim(state), refresh(state) and, if it likes,
abdicate(state, ending), handle_info(state, message), timing(opts), warnings(state), health(opts),
rights(opts), list(opts), evict(opts, name).
claim and refresh return: true, delay, { ttl, epoch, hold } | false, holder | nil, reason.

Modules to require by their names:
crown.oracle.cas              an oracle of any store that writes a record only if it is unchanged
crown.registry                members that know each other, and names that they keep
crown.testing                 conformance of oracles, oracles played by hand, a clock that stands]]

local function api_page()
  return heading("crown-lua", 3) .. [[
.SH NAME
crown \- elections for Lua programs under
.BR crown\-lua (1)
.SH SYNOPSIS
.nf
]] .. escape(API) .. [[

.fi
.SH DESCRIPTION
What has to wait suspends the task that calls it, never the program. It takes seconds, and returns nil, a message and a code when
it fails. Work spawned from
.B won
belongs to the term and is never resumed past its deadline.
]] .. see_also { ".BR crown\\-lua (1)" }
end

--- A page in roff.
-- @string name "crown-lua.1", "crown-lua.3", or a verb
-- @treturn string the page, or nil when there is none of that name
function manual.page(name)
  local command = require "crown.command"
  if name == "crown-lua.1" then return command_page(command) end
  if name == "crown-lua.3" then return api_page() end
  for _, verb in ipairs(command.verbs) do
    if verb == name then return verb_page(name, command.module(name), command.common_of(name)) end
  end
end

return manual
