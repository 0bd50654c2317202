--- How two members find out that they share a secret, before either reads anything further: each answers the other's fresh
-- challenge with an HMAC-SHA-256 (RFC 2104) over both challenges, both ids, the dialler's runtime and its own role. What was
-- recorded answers no later challenge, and what one side says cannot be turned against it. The secret itself never goes over the
-- line. Who dials says with his first words already something that only the secret makes, a ticket: where strangers crowd, it
-- tells him apart. It proves nothing: it may have been recorded.
-- @internal crown.registry.handshake

local base64 = require "crown.text.base64"
local crypto = require "crown.core.crypto"
local frames = require "crown.registry.frames"

local handshake = {}

--- Of what members say to each other: both ends speak the same.
handshake.VERSION = 2

--- Seconds for each of its steps.
handshake.TIMEOUT = 3

local FRAME_MOST = 1024 -- bytes that a stranger may send at once
local NONCE = 32        -- bytes
local TEXT_MOST = 400

-- What somebody may be told before he has proved anything; what else a stranger says is not repeated.
local VERSION, REGISTRY, GREETING = "another version of the links", "another registry", "no greeting of a member"
local REFUSALS = { [VERSION] = true, [REGISTRY] = true, [GREETING] = true }

local function is_text(value)
  return type(value) == "string" and #value > 0 and #value <= TEXT_MOST
end

local function proof(secret, role, talk)
  local parts = {}
  for i, part in ipairs { "crown-registry", tostring(handshake.VERSION), role, talk.registry, talk.dialer, talk.runtime,
    talk.acceptor, talk.theirs, talk.ours } do
    parts[i] = ("%d:%s"):format(#part, part)
  end
  return base64.encode(crypto.hmac_sha256(secret, table.concat(parts)))
end

local function ticket(secret, talk, acceptor)
  return proof(secret, "ticket", { registry = talk.registry, dialer = talk.dialer, runtime = talk.runtime, acceptor = acceptor,
    theirs = talk.theirs, ours = "" })
end

local function read(stream, timeout)
  return frames.read(stream, FRAME_MOST, timeout, timeout)
end

local function nonce()
  return base64.encode(crypto.random(NONCE))
end

-- Whoever knows the secret is asked who he is only then.
local function is_proved(answer, who, talk)
  talk.acceptor, talk.ours = answer.id, answer.nonce
  return is_text(answer.id) and is_text(answer.nonce) and is_text(answer.proof)
    and crypto.equal(answer.proof, proof(who.secret, "acceptor", talk))
end

--- The side that dials.
-- @param stream the connection
-- @tparam table who `registry`, `id`, `secret`, `runtime`
-- @string expected the id of the member that should answer
-- @number timeout seconds for each step
-- @return true; or nil, message, code: "denied" where the secrets differ
function handshake.dial(stream, who, expected, timeout)
  local talk = { registry = who.registry, dialer = who.id, runtime = who.runtime, theirs = nonce() }
  local sent, problem, code = stream:write(frames.encode { version = handshake.VERSION, registry = who.registry, id = who.id,
    runtime = who.runtime, nonce = talk.theirs, ticket = ticket(who.secret, talk, expected) })
  if not sent then return nil, problem, code end
  local answer
  answer, problem, code = read(stream, timeout)
  if not answer then return nil, problem, code end
  if REFUSALS[answer.error] then return nil, "it refuses: " .. answer.error, "denied" end
  if not is_proved(answer, who, talk) then return nil, "it does not know the secret", "denied" end
  if answer.id ~= expected then return nil, ("there is %s, not %s"):format(answer.id, expected), "denied" end
  sent, problem, code = stream:write(frames.encode { proof = proof(who.secret, "dialer", talk) })
  if not sent then return nil, problem, code end
  answer, problem, code = read(stream, timeout)
  if not answer then return nil, problem, code end
  if answer.ok ~= true then return nil, "it refuses: " .. tostring(answer.error), "denied" end
  return true
end

local function hello_problem(hello, who)
  if hello.version ~= handshake.VERSION then return VERSION end
  if hello.registry ~= who.registry then return REGISTRY end
  if not is_text(hello.id) or not is_text(hello.runtime) or not is_text(hello.nonce) then return GREETING end
end

local function refuse(stream, why)
  stream:write(frames.encode { error = why })
  return nil, why, "denied"
end

--- The side that is dialled.
-- @param stream the connection
-- @tparam table who `registry`, `id`, `secret`
-- @number timeout seconds for each step
-- @tparam function refused `refused(id, runtime)`: why somebody who knows the secret is not let in all the same, or nil
-- @tparam[opt] function has_ticket `has_ticket(id)`: called as soon as the other has shown a ticket
-- @treturn string the other's id; or nil, message, code: "denied", "nonsense", or that of the connection
function handshake.accept(stream, who, timeout, refused, has_ticket)
  local hello, problem, code = read(stream, timeout)
  if not hello then return nil, problem, code end
  local wrong = hello_problem(hello, who)
  if wrong then return refuse(stream, wrong) end
  local talk = { registry = who.registry, dialer = hello.id, runtime = hello.runtime, acceptor = who.id,
    theirs = hello.nonce, ours = nonce() }
  if has_ticket and is_text(hello.ticket) and crypto.equal(hello.ticket, ticket(who.secret, talk, who.id)) then
    has_ticket(hello.id)
  end
  local sent
  sent, problem, code = stream:write(frames.encode { id = who.id, nonce = talk.ours,
    proof = proof(who.secret, "acceptor", talk) })
  if not sent then return nil, problem, code end
  local answer
  answer, problem, code = read(stream, timeout)
  if not answer then return nil, problem, code end
  if not is_text(answer.proof) or not crypto.equal(answer.proof, proof(who.secret, "dialer", talk)) then
    return refuse(stream, "the secret is another one")
  end
  local why = refused(hello.id, hello.runtime)
  if why then return refuse(stream, why) end
  sent, problem, code = stream:write(frames.encode { ok = true })
  if not sent then return nil, problem, code end
  return hello.id
end

return handshake
