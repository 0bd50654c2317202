--- Real servers that speak TLS, with the certificate and the authority of a directory (support.authority): each starts by
-- `(dir)` and returns the server, a URL with `%d` for its port and room for more options, and such a URL below which no other
-- election is, where that needs another one. `server:renew()` makes it read its certificate again when it is started next.
local crown = require "crown"
local Etcd = require "support.etcd"
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

local stores = {}

local function never() end

local function with_ca(dir, server, ...)
  local urls = { ... }
  for i, url in ipairs(urls) do urls[i] = url .. dir .. "/ca.crt&" end
  server.renew = server.renew or never
  return server, unpack(urls)
end

function stores.redis(dir)
  local files = ("tls-cert-file %s/s.crt\ntls-key-file %s/s.key\ntls-ca-cert-file %s/ca.crt\n"):format(dir, dir, dir)
  return with_ca(dir, Redis.start { tls = true, scheme = "rediss", query = ("?ca=%s/ca.crt"):format(dir),
    config = files .. "tls-auth-clients no\n" }, "rediss://127.0.0.1:%d?ca=")
end

function stores.nats(dir)
  return with_ca(dir, Nats.start { config = ("tls { cert_file: %s/s.crt, key_file: %s/s.key }"):format(dir, dir) },
    "tls://127.0.0.1:%d/SPEC?ca=", "tls://127.0.0.1:%d/WELL?ca=")
end

function stores.etcd(dir)
  return with_ca(dir, Etcd.start(dir), "etcds://127.0.0.1:%d?ca=", "etcds://127.0.0.1:%d/well?ca=")
end

-- Postgres wants the key to be its own.
function stores.postgres(dir)
  local own = tempdir()
  local function renew()
    assert(crown.exec({ "/bin/sh", "-c", ("cp %s/s.crt %s/s.key %s; chmod 600 %s/s.key; chown -f postgres %s/s.*; true")
      :format(dir, dir, own, own, own) }).code == 0)
  end
  renew()
  local server = Postgres.start { dir = own, config = ("ssl = on\nssl_cert_file = '%s/s.crt'\nssl_key_file = '%s/s.key'\n")
    :format(own, own) }
  server.renew = renew
  local url = "postgres://crown@127.0.0.1:%d/crown?sslmode=verify-full&sslrootcert="
  return with_ca(dir, server, url, url)
end

return stores
