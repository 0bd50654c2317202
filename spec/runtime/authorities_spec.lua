-- Whom HTTP and crown.tcp believe, and how often the system's certificates are read. The host's own are the spec's. Needs root.
local authority = require "support.authority"
local crown = require "crown"
local is_root = require "support.is_root"
local Names = require "support.names"
local tempdir = require "support.tempdir"

local APP = [[
local crown = require "crown"
local dir = "%s"
local listener = crown.tcp.listen("127.0.0.1", 0, function(connection)
  for line in function() return connection:read("*l", 10) end do
    if line == "\r" then connection:write "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" end
  end
end, { tls = { cert = dir .. "/s.crt", key = dir .. "/s.key" } })
local function ask(ca)
  local answer, problem = crown.http.request { url = "https://127.0.0.1:" .. listener:port() .. "/", timeout = 20, ca = ca }
  print(answer and answer.status or problem)
end
%s
os.exit(0)
]]

local as_root = is_root and describe or pending

as_root("the authorities that HTTP and TLS believe", function()
  local dir, system

  -- A directory of certificates as the system has it: by their hashes, and all in one file. Each test's own, since one spoils it.
  before_each(function()
    dir, system = authority(), tempdir()
    local made = crown.exec({ "sh", "-c", ("cp %s/ca.crt %s/ca-certificates.crt && cp %s/ca.crt %s/ca.pem && openssl rehash %s")
      :format(dir, system, dir, system, system) }, { timeout = 60 })
    assert.equal(0, made.code, made.stderr)
  end)

  local function run(script)
    return Names.run(APP:format(dir, script), { sh = ("mount --bind %s /etc/ssl/certs"):format(system) })
  end

  it("are the user's own alone, where there are some", function()
    local result = run [[ask() ask(dir .. "/other.crt") ask(dir .. "/ca.crt")]]
    assert.matches("^200\n[^\n]*certificate[^\n]*\n200\n", result.stdout)
  end)

  it("are the system's for crown.tcp too, where the user has none", function()
    local result = run [[
for _, ca in ipairs { false, dir .. "/other.crt" } do
  local stream, problem = crown.tcp.connect("127.0.0.1", listener:port(), { timeout = 20, tls = { ca = ca or nil } })
  print(stream and "open" or problem)
end]]
    assert.matches("^open\n[^\n]*certificate[^\n]*\n$", result.stdout)
  end)

  it("are read from the system once, and from the user's file each time", function()
    local result = run [[
ask()
os.execute "cp /dev/null /etc/ssl/certs/ca-certificates.crt; rm /etc/ssl/certs/*.0"
ask()
ask(dir .. "/ca.crt")
os.execute("cp " .. dir .. "/other.crt " .. dir .. "/ca.crt")
ask(dir .. "/ca.crt")]]
    assert.matches("^200\n200\n200\n[^\n]*certificate[^\n]*\n$", result.stdout)
  end)
end)
