local admin = require "crown.etcd.admin"

-- A server that says of itself what it is told here.
local function warnings(version, members)
  local client = {}
  function client.ask(_, path)
    if path == "/v3/maintenance/status" then return { version = version } end
    return { members = members }
  end
  return table.concat(assert(admin.health(client)).warnings, "\n")
end

describe("what is said of an etcd", function()
  local THREE = { {}, {}, {} }

  for version, word in pairs { ["3.4.23"] = "3.4.31", ["3.4.30"] = "3.4.31", ["3.5.0"] = "3.5.13", ["3.5.12"] = "3.5.13" } do
    it(("names the version that no former leading member ends leases in: %s"):format(version), function()
      assert.matches("two may lead after a freeze of the member that leads etcd: use etcd " .. word .. " or later",
        warnings(version, THREE), 1, true)
    end)
  end

  for _, version in ipairs { "3.4.31", "3.4.40", "3.5.13", "3.5.100", "3.6.0", "3.10.1", "4.0.0", "unknown" } do
    it("warns of no freeze with " .. version, function() assert.equal("", warnings(version, THREE)) end)
  end

  it("warns of no freeze where no other member can lead etcd", function()
    assert.equal("", warnings("3.4.23", { {} }))
  end)
end)
