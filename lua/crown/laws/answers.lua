--- Laws of a store whose answers are late or lost. They are tried through a proxy that holds the server's answers back.
-- @internal crown.laws.answers

local Bench = require "crown.laws.bench"
local core = require "crown.core"
local HeldBack = require "crown.laws.held_back"
local url = require "crown.text.url"

local broken, show = Bench.broken, Bench.show

local TIMEOUT = 1 -- seconds for one question
local OVER = 3 -- seconds by which a question may take longer, on a busy machine
local WRITES = 2 -- a new record, and one over it

-- Where the store is, and the URL with another place in its stead; or nil.
local function place_of(text)
  local scheme, login, hosts, rest = (text or ""):match "^([%w+._-]+://)([^/?]*@)([^/?]+)(.*)$"
  if not scheme then
    scheme, hosts, rest = (text or ""):match "^([%w+._-]+://)([^/?]+)(.*)$"
    login = ""
  end
  local host, port = url.address(hosts or "")
  if not host or not port or hosts:find(",", 1, true) then return nil end
  return { host = host, port = port, by = function(other) return ("%s%s127.0.0.1:%d%s"):format(scheme, login, other, rest) end }
end

-- The store that is reached through a proxy, made once.
local function through(bench)
  if bench.through then return bench.through, bench.proxy end
  local place = place_of(bench.url)
  if not place then Bench.untried "the URL does not name one host and its port, before which answers could be held back" end
  local problem
  bench.proxy, problem = HeldBack.start(place.host, place.port)
  if not bench.proxy then Bench.untried(problem) end
  local store
  store, problem = bench.open(place.by(bench.proxy.port), TIMEOUT)
  if not store then Bench.untried(problem) end
  local fine, why = pcall(Bench.look, store, bench:name())
  if not fine then
    why = type(why) == "table" and (why.silent or why.broken) or tostring(why)
    Bench.untried(("the store cannot be reached through a proxy on this host (%s)"):format(why))
  end
  bench.through = store
  return store, bench.proxy
end

-- Asks while no answer passes; it has to end in time.
local function ask_in_vain(proxy, ask)
  local began = core.now()
  proxy:hold()
  local fine, answer, problem = pcall(ask)
  local took = core.now() - began
  proxy:release()
  if not fine then error(answer, 0) end
  if took > TIMEOUT + OVER then
    broken("a question took %.1f s without an answer, although `timeout` is %d s", took, TIMEOUT)
  end
  return answer, problem
end

local laws = {}

local function law(text, try)
  laws[#laws + 1] = { text = text, try = try }
end

law("a look without an answer is not known, and ends in time", function(bench)
  local store, proxy = through(bench)
  local name = bench:name()
  bench:must_write(bench.one, name, false)
  local answers, problem = ask_in_vain(proxy, function() return store:look { name } end)
  if answers ~= nil then
    broken("the server gave no answer, and the look answered with text = %s: nil and a message are expected",
      show(answers[name] and answers[name].text))
  end
  if type(problem) ~= "string" then broken("a look that nobody answered returned no message, but %s", show(problem)) end
end)

local function lose_answer(bench, store, lose, how)
  local name, version = bench:name(), false
  for _ = 1, WRITES do
    local text = bench:text(name)
    local new = lose(function() return bench:write(store, name, version, text) end)
    local answer = Bench.look(bench.one, name)
    if new == false then
      broken("a write whose answer was %s was said to be refused%s: nil and a message are expected", how,
        answer.text == text and ", and was done" or "")
    end
    if new and answer.text ~= text then broken("a write whose answer was %s was said to be done, and was not", how) end
    Bench.look(store, name) -- it is answered again
    version = answer.version or false
  end
end

law("a write without an answer is not known", function(bench)
  local store, proxy = through(bench)
  lose_answer(bench, store, function(ask) return (ask_in_vain(proxy, ask)) end, "held back")
end)

law("a write whose connection ended before the answer is not known", function(bench)
  local store, proxy = through(bench)
  lose_answer(bench, store, function(ask)
    proxy:cut()
    local new = ask()
    proxy:release()
    return new
  end, "lost with its connection")
end)

law("a late answer is taken for that of no later question", function(bench)
  local store, proxy = through(bench)
  local early, later = bench:name(), bench:name()
  bench:must_write(bench.one, early, false)
  local _, text = bench:must_write(bench.one, later, false)
  ask_in_vain(proxy, function() return store:look { early } end)
  if Bench.look(store, later).text ~= text then broken "a look was answered with the late answer to an earlier one" end
end)

return laws
