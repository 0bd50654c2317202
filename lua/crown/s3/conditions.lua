--- Whether a server keeps the conditions of a write, on which all rests, and how it wants them written. Some ignore them.
-- @internal crown.s3.conditions

local core = require "crown.core"

local conditions = {}

--- The object that this is tried with, without the prefix. No election's object is called so.
conditions.KEY = "@conditions"

local BODY = '{"is":"the object by which crown-lua tries whether this server keeps the conditions of a write"}\n'
local NEVER = "00000000000000000000000000000000" -- an ETag that this object does not have
local TRIES, PAUSE = 3, 0.05 -- others try at the same time; seconds between two tries
local IGNORES = "the server ignores %s: it is no store for elections, since two could lead; it has to know conditional writes"

local function put(client, headers, timeout)
  return client:ask({ method = "PUT", key = conditions.KEY, headers = headers, body = BODY }, timeout)
end

-- Of a write that must not be done: true where it was not; or nil, message, code. A conflict with another write is no success.
local function refused(client, headers, timeout)
  local name = next(headers)
  local answer, problem, code, said = put(client, headers, timeout)
  if answer and answer.status == 200 then return nil, client:named(IGNORES:format(name)), "usage" end
  if answer or said and said.status == 409 then return true end
  return nil, problem, code
end

--- An ETag as the server wants it in If-Match: Ceph 16 wants it without the quotes that it sends.
-- @string version as the server sends it
-- @bool bare
-- @treturn string
function conditions.tag(version, bare)
  return bare and version:gsub('"', "") or version
end

-- @return whether a write over the object as it is has been done; or nil, message, code
local function is_taken(client, bare, timeout)
  local answer, problem, code = client:ask({ method = "GET", key = conditions.KEY }, timeout)
  if not answer then return nil, problem, code end
  if answer.status ~= 200 then return false end
  answer, problem, code = put(client, { ["If-Match"] = conditions.tag(answer.headers.etag or "", bare) }, timeout)
  if not answer then return nil, problem, code end
  return answer.status == 200
end

--- Tries it: some five requests.
-- @tparam Client client of crown.s3.client
-- @number timeout seconds for each of them
-- @treturn string "quoted" or "bare": how an ETag is to be written; or nil, message, code
function conditions.prove(client, timeout)
  local made, problem, code, said = put(client, { ["If-None-Match"] = "*" }, timeout)
  if not made and not (said and said.status == 409) then return nil, problem, code end
  for _, headers in ipairs { { ["If-None-Match"] = "*" }, { ["If-Match"] = '"' .. NEVER .. '"' }, { ["If-Match"] = NEVER } } do
    local fine
    fine, problem, code = refused(client, headers, timeout)
    if not fine then return nil, problem, code end
  end
  for _ = 1, TRIES do
    for _, form in ipairs { "quoted", "bare" } do
      local taken
      taken, problem, code = is_taken(client, form == "bare", timeout)
      if taken then return form end
    end
  end
  return nil, problem or client:named "the server takes no write under If-Match", code or "store"
end

--- Tries a write that must not be done; again after a conflict, since others try it at the same time.
-- @tparam Client client
-- @number timeout seconds
-- @treturn boolean true; or nil, message, code and the server's answer
function conditions.try(client, timeout)
  local answer, problem, code, said
  for _ = 1, TRIES do
    answer, problem, code, said = put(client, { ["If-Match"] = '"' .. NEVER .. '"' }, timeout)
    if answer and answer.status == 200 then return nil, client:named(IGNORES:format "If-Match"), "usage" end
    if answer then return true end
    if not said or said.status ~= 409 then return nil, problem, code, said end
    core.sleep(PAUSE)
  end
  return nil, problem, code, said
end

return conditions
