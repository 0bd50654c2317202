-- MariaDB over TLS: whose certificate counts, and what an ordinary server and an ordinary URL say to it.
local authority = require "support.authority"
local driver = require "crown.stores.mysql"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"

describe("the register in MySQL over TLS", function()
  local server, plain, dir, there

  setup(function()
    dir = authority()
    server = Mysql.start { args = { "--ssl-cert=" .. dir .. "/s.crt", "--ssl-key=" .. dir .. "/s.key" } }
    plain = Mysql.start()
    server:sql "CREATE USER safe@'%' IDENTIFIED BY 'secret' REQUIRE SSL; GRANT ALL ON crown.* TO safe@'%'"
  end)
  teardown(function()
    server:destroy()
    plain:destroy()
  end)
  after_each(function() there:close() end)

  local function open(scheme, at, login, query)
    there = assert(driver.open { url = ("%s://%s@127.0.0.1:%d/crown%s"):format(scheme, login, at.port, query),
      options = { table = "crown_register" }, timeout = 5 })
  end

  local function problem()
    local answers, why = there:look { "e" }
    assert.is_nil(answers)
    return why
  end

  it("is asked where its certificate is of an authority that is named", function()
    open("mysqls", server, "safe:secret", "?ca=" .. dir .. "/ca.crt")
    eventually(function() return there:look { "e" } end, 20)
    local memory = there:look({ "e" }).e.memory
    assert.is_string(assert(there:swap { { name = "e", version = false, text = "one", memory = memory } })[1])
    assert.matches("MariaDB", assert(there:health()).facts[1][2])
  end)

  it("is not asked where it is of another one", function()
    open("mysqls", server, "safe:secret", "?ca=" .. dir .. "/other.crt")
    assert.matches("certificate", problem())
  end)

  it("is refused by a server that has none, in words", function()
    open("mysqls", plain, "crown", "?insecure=true")
    assert.matches("does not offer TLS", problem())
  end)

  it("is wanted by the server of a user who may not come without", function()
    open("mysql", server, "safe:secret", "")
    assert.matches("Access denied for user 'safe'", problem())
  end)
end)
