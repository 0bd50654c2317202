--- The pass that a client of etcd asks with. etcd computes on each login, on a busy host for longer than a question may take, and
-- goes on when nobody waits for it any more. So there is one login at a time at an endpoint, for all who ask; it goes on when a
-- question that wanted it is given up; and one that had no answer in time is followed by one that may take twice as long.
--
-- A pass names how far etcd had come when it was given. An etcd that is not there yet, since it was made anew or restored, lets
-- those wait who come with it, and says nothing. So where a question has no answer, another pass is got meanwhile.
-- @internal crown.etcd.login

local core = require "crown.core"
local Shared = require "crown.link.shared"

local Login = {}
Login.__index = Login

local MOST = 8 -- seconds for one
local PASS_IS_OLD = { "invalid auth token", "revision of auth store is old" }
local UNAUTHORIZED = 401

-- @return the pass; or nil, message, code
local function run(self, endpoint)
  if self.pass and self.pass ~= self.doubted then return self.pass end
  local patience = self.patience[endpoint] or self.timeout
  local answer, problem, code = self.ask(endpoint, patience)
  self.patience[endpoint] = code == "timeout" and math.max(self.timeout, math.min(2 * patience, MOST)) or nil
  self.doubted = nil -- also where there is no other one: until a question is without an answer again
  if not answer then return nil, problem, code end
  self.pass = answer.token
  return self.pass
end

local function login_at(self, endpoint)
  local login = self.logins[endpoint] or Shared.new(function() return run(self, endpoint) end)
  self.logins[endpoint] = login
  return login
end

--- Makes one; nothing is asked yet.
-- @number timeout seconds that a question waits
-- @tparam function ask `ask(endpoint, timeout)` logs in → what etcd answers; or nil, message, code
-- @treturn Login
function Login.new(timeout, ask)
  return setmetatable({ timeout = timeout, ask = ask, patience = {}, logins = {} }, Login)
end

--- The pass; waits for one where there is none.
-- @number endpoint that is asked
-- @treturn string; or nil, message, code
function Login:wait(endpoint)
  if self.pass then return self.pass end
  return login_at(self, endpoint):ask(self.timeout)
end

--- Takes note that there was no answer in time to a question. Its pass stays until there is another one.
-- @number endpoint that was asked
-- @string[opt] pass that it was asked with
function Login:unanswered(endpoint, pass)
  if not pass or pass ~= self.pass or self.doubted == pass then return end
  self.doubted = pass
  core.detach(function() login_at(self, endpoint):ask() end)
end

--- Drops the pass, where what etcd says means that it is not taken any more; but not a newer one than it was asked with.
-- @string pass that it was asked with
-- @string problem what etcd says
-- @number[opt] status of its answer
-- @treturn boolean whether it was not taken
function Login:refused(pass, problem, status)
  local old = status == UNAUTHORIZED
  for _, words in ipairs(PASS_IS_OLD) do old = old or problem:find(words, 1, true) ~= nil end
  if old and self.pass == pass then self.pass = nil end
  return old
end

return Login
