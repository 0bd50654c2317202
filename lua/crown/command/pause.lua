--- Orders that nobody leads an election for a while.
-- @internal crown.command.pause

local core = require "crown.core"
local ordering = require "crown.command.ordering"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local seconds = require "crown.check.seconds"
local usage = require "crown.check.usage"

local pause = {
  summary = "have nobody lead an election for a while",
  usage = "crown-lua pause [OPTIONS] NAME [--for TIME] [--keep] [--why TEXT]",
  most_words = 1,
  options = {
    { name = "for", value = "TIME", help = "such as 2h, 30m or 1h30m, by the hosts' wall clocks", default = "until resume" },
    { name = "keep", help = "who leads goes on; nobody takes over when that ends" },
    { name = "why", value = "TEXT", help = "what others are shown", default = "nothing" },
    ordering.wait_option "the leader to go",
  },
  help = [[
No candidate of NAME claims any more, and the leader steps down in order. info and status show
since when, until when, by whom and why. Exit code 1 where there is no such election, and where
its leader has not gone in time: the pause stands all the same.

  crown-lua pause --oracle redis://db nightly --for 2h --why 'the disks are replaced']],
}

local function fields_of(options)
  local length
  if options["for"] then
    length = seconds.read(options["for"])
    if not length or length > seconds.LONGEST then
      usage.error("--for: '%s' is no time of up to %d days, such as 2h, 30m or 1h30m", printable(options["for"]),
        seconds.LONGEST / 86400)
    end
  end
  local now = core.now() + core.wall_offset() -- whole seconds would end it sooner than was said
  local ends = length and math.ceil(now + length)
  return { pause = true, keep = options.keep, since = math.floor(now), ["until"] = ends, by = ordering.by(),
    why = options.why and printable(options.why) }
end

--- The verb.
function pause.run(options, words)
  local name, fields = ordering.name(pause, words), fields_of(options)
  local before, list, opts = ordering.write(pause, name, fields)
  if not before then return list end
  local ends = fields["until"]
  local text = ends and os.date("'%%s' is paused until %Y-%m-%d %H:%M:%S %z", ends) or "'%s' is paused until crown-lua resume"
  local leader = before.node and printable(before.node)
  local more = leader and options.keep and ("; %s leads on"):format(leader) or ""
  if before.is_unknown then more = "; nobody leads it now, and no candidate will" end
  output.line(text:format(name) .. more)
  if not leader or options.keep then return 0 end
  local code, unread = output.finish(0) -- before the wait: that may be long
  if unread then return code end
  local is_over = false
  local function has_gone(one)
    is_over = one and one.over == true
    return is_over or not one or not one.node or one.epoch ~= before.epoch
  end
  local function look() return ordering.look(list, opts, name) end
  local wait = options.wait or ordering.WAIT
  local now = list and ordering.await(ends and math.min(wait, math.max(0, ends - os.time())) or wait, look, has_gone)
  if list and now == nil and ends and os.time() >= ends then
    output.say("pause", ("the pause is over, and %s has not stepped down: it leads on; give --for several times the oracle's "
      .. "refresh, and the time that its command takes to stop"):format(leader))
    return 1
  end
  if list and now == nil then
    output.say("pause", ("%s has not stepped down in time: nobody follows it when it does"):format(leader))
    return 1
  end
  local gone = is_over and "%s's lease is over" or before.ends_alike and "%s leads no more" or "%s has stepped down"
  if list then output.line(gone:format(leader)) end
  return 0
end

return pause
