-- What a candidate says of a certificate that stops it: each trouble has its own next step, whatever store tells of it.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Redis = require "support.redis"
local run = require "support.run"

-- A certificate that is over before it begins to be used, and one for another host.
local MORE = [[cd %s && : >index && echo 01 >serial && cat >conf <<END
[ca]
default_ca=d
[d]
database=index
serial=serial
new_certs_dir=.
default_md=sha256
policy=p
[p]
commonName=supplied
END
openssl ca -batch -config conf -cert ca.crt -keyfile ca.key -in s.csr -out old.crt -extfile ext -notext \
  -startdate 20200101000000Z -enddate 20200102000000Z
printf 'subjectAltName=DNS:elsewhere' >ext2
openssl x509 -req -in s.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out away.crt -days 2 -extfile ext2
cp s.crt right.crt]]

local START = {
  redis = function(dir, wants)
    return Redis.start { tls = true, scheme = "rediss", query = ("?insecure=true&cert=%s/right.crt&key=%s/s.key"):format(dir, dir),
      config = ("tls-cert-file %s/s.crt\ntls-key-file %s/s.key\ntls-ca-cert-file %s/ca.crt\ntls-auth-clients %s\n"):format(dir, dir,
        dir, wants and "yes" or "no") }, "rediss://127.0.0.1:%d"
  end,
  nats = function(dir, wants)
    return Nats.start { config = ("tls { cert_file: %s/s.crt, key_file: %s/s.key%s }"):format(dir, dir,
      wants and (", ca_file: %s/ca.crt, verify: true"):format(dir) or "") }, "tls://127.0.0.1:%d/SPEC"
  end,
  etcd = function(dir) return Etcd.start(dir), "etcds://127.0.0.1:%d" end,
}

describe("of a certificate that stops it", function()
  local dir, server

  setup(function()
    dir = authority()
    local made = crown.exec({ "sh", "-c", MORE:format(dir) }, { timeout = 60 })
    assert(made and made.code == 0, made and made.stderr)
  end)
  after_each(function()
    if server then server:destroy() end
    server = nil
  end)

  -- What `check --store` says of a server with a certificate.
  local function said(name, certificate, wants)
    local url
    assert(crown.exec({ "cp", dir .. "/" .. certificate, dir .. "/s.crt" }).code == 0)
    server, url = START[name](dir, wants)
    local result = run { "check", "--store", "--oracle", ("%s?ca=%s/ca.crt&timeout=3"):format(url:format(server.port), dir), "run", "x",
      "true" }
    assert.not_equal(0, result.code)
    return result.stdout
  end

  for name in pairs(START) do
    it("a candidate in " .. name .. " says that it is out of date", function()
      assert.matches("; renew the server's certificate, or set the clocks right\n", said(name, "old.crt"))
    end)

    it("a candidate in " .. name .. " says that it is for another name", function()
      assert.matches("; the certificate is for another name: have the URL name the server so\n", said(name, "away.crt"))
    end)
  end

  for _, name in ipairs { "nats", "redis" } do
    it("a candidate in " .. name .. " says that the server wants one", function()
      assert.matches("; the server wants a certificate that it trusts: name it by cert=FILE and key=FILE\n",
        said(name, "right.crt", true))
    end)
  end

  it("a candidate in etcd says that the server wants one", function()
    local port = require("support.port").free()
    local here, peer = "https://127.0.0.1:" .. port, "http://127.0.0.1:" .. require("support.port").free()
    local process = Candidate.start { program = "/usr/bin/etcd", node = "etcd", log = dir .. "/log", args = { "--data-dir",
      dir .. "/data", "--listen-client-urls", here, "--advertise-client-urls", here, "--listen-peer-urls", peer,
      "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" .. peer, "--log-level", "error", "--unsafe-no-fsync",
      "--cert-file", dir .. "/right.crt", "--key-file", dir .. "/s.key", "--client-cert-auth", "--trusted-ca-file", dir .. "/ca.crt" } }
    finally(function()
      process:hurt_self "KILL"
      process:wait(20)
    end)
    eventually(function()
      local shown = run { "check", "--store", "--oracle", ("etcds://127.0.0.1:%d?ca=%s/ca.crt&timeout=3"):format(port, dir), "run", "x",
        "true" }
      return shown.stdout:find("; the server wants a certificate that it trusts: name it by cert=FILE and key=FILE\n", 1, true)
    end, 20)
  end)

  it("a candidate says that it has no key", function()
    local result = run { "check", "--oracle", ("rediss://127.0.0.1:1?cert=%s/right.crt"):format(dir), "run", "x", "true" }
    assert.matches("right%.crt holds no private key: name its file by key=FILE\n", result.stderr)
  end)
end)
