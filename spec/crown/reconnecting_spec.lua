local elections = require "crown.core.election"
local eventually = require("crown.testing").eventually
local Reconnecting = require "crown.link.reconnecting"

describe("a connection that is made anew", function()
  local told, emit, connection

  before_each(function()
    told, emit = {}, elections.emit
    elections.emit = function(event, fields) told[#told + 1] = { event, fields.error } end -- luacheck: ignore
  end)

  after_each(function()
    elections.emit = emit -- luacheck: ignore
    connection:close()
  end)

  it("tells each cause of an outage once, and not at every try", function()
    local tries = 0
    connection = Reconnecting.new { label = "store", store = "store", timeout = 5, open = function()
      tries = tries + 1
      return nil, tries % 2 == 1 and "refused" or "no route"
    end }
    eventually(function() return tries >= 4 end, 20)
    assert.same({ { "oracle.disconnected", "refused" }, { "oracle.disconnected", "no route" } }, told)
  end)

  it("tells only so many, where each try fails in words of its own", function()
    local tries = 0
    connection = Reconnecting.new { label = "store", store = "store", timeout = 5, open = function()
      tries = tries + 1
      return nil, "trouble " .. tries
    end }
    connection.told_count = 7 -- one is left; the pauses between tries grow
    eventually(function() return tries >= 3 end, 20)
    assert.equal(1, #told)
  end)

  it("tells how it is, also while it is being closed", function()
    connection = Reconnecting.new { store = "store", timeout = 5, open = function()
      return { close = function() end, heard = 1 }
    end }
    eventually(function() return connection:condition().state == "proven" end, 20)
    connection:close()
    assert.equal("proven", connection:condition().state)
  end)

  it("has no trouble any more when it was closed on purpose", function()
    connection = Reconnecting.new { store = "store", timeout = 5, open = function() return nil, "refused" end }
    eventually(function() return connection:trouble() == "refused" end)
    connection:close()
    assert.is_nil(connection:trouble())
  end)
end)
