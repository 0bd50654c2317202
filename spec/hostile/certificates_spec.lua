-- Certificates that end, change, are half written, or are of no use: real servers with TLS, and one program that has an election on
-- each of them, with a healthy one beside.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local judge = require "support.judge"
local read_file = require "crown.text.read_file"
local Stillness = require "support.stillness"
local tempdir = require "support.tempdir"
local tls_stores = require "support.tls_stores"
local write_file = require "support.write_file"

local OPTIONS = "ttl=4&amnesia_wait=0&trust_empty=true"

local APP = [[
package.path = "spec/?.lua;" .. package.path
local crown = require "crown"
require "support.healthy" ()
for i = 1, #arg do
  local name, url = arg[i]:match "^(%l+)=(.*)$"
  crown.elect { name = name, oracle = url, retry = 0.3, handlers = {
    won = function() print("WON " .. name) end,
    lost = function() print("LOST " .. name) end,
  } }
end
]]

-- A certificate for the same key and names, by the authority of the directory, for days that are over.
local EXPIRE = [[
cd "$1" && touch index && echo 01 >serial &&
printf '[ca]\ndefault_ca=c\n[c]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\nCN=optional\n' >conf &&
openssl ca -batch -config conf -cert ca.crt -keyfile ca.key -in s.csr -out s.crt -extfile ext -notext \
  -startdate 20200101000000Z -enddate 20200102000000Z
]]

local function shell(script, ...)
  local result = assert(crown.exec({ "/bin/sh", "-c", script, "sh", ... }, { timeout = 60 }))
  assert(result.code == 0, result.stderr)
end

describe("certificates that change while a program runs", function()
  local dir, servers, app, still

  setup(function()
    dir, servers, still = authority(), {}, Stillness.start()
    write_file(dir .. "/app.lua", APP)
    local args = { dir .. "/app.lua" }
    for name, start in pairs(tls_stores) do
      local server, url = start(dir)
      servers[name] = server
      args[#args + 1] = name .. "=" .. url:format(server.port) .. OPTIONS
    end
    app = Candidate.start { args = args, node = "one", log = dir .. "/log", env = { CROWN_LOOP_HELD = dir .. "/held" } }
  end)
  teardown(function()
    app:destroy()
    still:destroy()
    for _, server in pairs(servers) do server:destroy() end
  end)

  local function all_are(word, since)
    for name in pairs(servers) do
      eventually(function() return app:output():find(word .. " " .. name, since, true) or error(name .. app:output():sub(since)) end, 30)
    end
  end

  local function restart()
    local since = #app:output()
    for name, server in pairs(servers) do
      server:down()
      server:renew()
      if name == "etcd" then server:launch() else server:up() end -- nobody asks it with the old authority
    end
    return since
  end

  it("are believed as they are at each new connection", function()
    all_are("WON", 1)
    local good = read_file(dir .. "/s.crt")
    shell(EXPIRE, dir)
    local since = restart()
    all_are("LOST", since)
    eventually(function() -- libcurl has no word for it
      return select(2, app:output():sub(since):gsub("expired", "")) >= 3 or error(app:output():sub(since))
    end, 30)
    write_file(dir .. "/s.crt", good)
    all_are("WON", restart())

    local other = authority()
    shell('cd "$2" && cp "$1"/s.* .', other, dir)
    since = restart()
    all_are("LOST", since)
    local ca = read_file(other .. "/ca.crt")
    since = #app:output()
    write_file(dir .. "/ca.crt", ca:sub(1, math.floor(#ca / 2)))
    crown.sleep(2)
    write_file(dir .. "/ca.crt", "")
    crown.sleep(2)
    assert.is_nil(app:output():find("WON", since, true))
    since = #app:output()
    write_file(dir .. "/ca.crt", ca)
    all_are("WON", since)
    judge.program(app:output(), dir .. "/held", still)
  end)
end)

-- Asks once over TLS, by crown.tcp and by HTTP, and prints what comes of it.
local ASK = [[
local crown = require "crown"
local port, ca = tonumber(arg[1]), arg[2]
local connection, problem = crown.tcp.connect("127.0.0.1", port, { timeout = 20, tls = { ca = ca } })
print(connection and "open" or problem)
local answer
answer, problem = crown.http.request { url = ("https://127.0.0.1:%d/"):format(port), timeout = 20, ca = ca }
print(answer and answer.status or problem)
os.exit(0)
]]

-- Each by the one before it, with a key of its own; the last is the server's. In a circle two authorities are signed by each other.
local CHAINS = [[
cd "$1" && set -e
key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }
request() { openssl req -new -key $1.key -subj /CN=$1 -out $1.csr; }
printf 'basicConstraints=critical,CA:true' >as_ca
sign() { openssl x509 -req -in $1.csr -CA $2.crt -CAkey $2.key -CAcreateserial -days 2 -out $3.crt -extfile $4 2>/dev/null; }
key root; openssl req -x509 -new -key root.key -subj /CN=root -days 2 -out root.crt
before=root
for i in $(seq "$2"); do
  key c$i; request c$i; sign c$i $before c$i as_ca; before=c$i
done
cp $before.crt last.crt; cp $before.key last.key
key s; request s; printf 'subjectAltName=IP:127.0.0.1' >ext; sign s last s ext
cp s.crt long.crt
for i in $(seq "$2" -1 1); do cat c$i.crt >>long.crt; done
key a; request a; key b; request b
openssl x509 -req -in a.csr -signkey a.key -days 2 -out a.crt -extfile as_ca 2>/dev/null
sign b a b as_ca; sign a b a as_ca
request s; sign s a circle ext; cat a.crt b.crt a.crt b.crt >>circle.crt
cp s.crt large.crt
for i in $(seq 400); do cat c1.crt >>large.crt; done
]]

describe("a chain of certificates that is", function()
  local dir

  setup(function()
    dir = tempdir()
    shell(CHAINS, dir, "40")
    write_file(dir .. "/app.lua", ASK)
  end)

  local function asked(name)
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      if not connection:read("*l", 20) then return end
      connection:write "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
      connection:close()
    end, { tls = { cert = ("%s/%s.crt"):format(dir, name), key = dir .. "/s.key" } }))
    finally(function() listener:close() end)
    local one = Candidate.start { args = { dir .. "/app.lua", listener:port(), dir .. "/root.crt" }, node = "one",
      log = ("%s/%s.log"):format(dir, name), env = { CROWN_LOOP_HELD = ("%s/%s.held"):format(dir, name) } }
    one:wait(30)
    judge.program(one:output(), ("%s/%s.held"):format(dir, name))
    return one:output()
  end

  it("long is believed", function() assert.matches("^open\n200\n$", asked "long") end)
  it("a circle is not", function() assert.matches("certificate verify failed.*\n.*certificate", asked "circle") end)
  it("larger than a hundred KiB is not", function() assert.is_nil(asked("large"):find "^open") end)
end)
