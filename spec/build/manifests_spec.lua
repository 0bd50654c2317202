-- The manifests for Kubernetes, against the API as its Python client publishes it; the Compose file, by docker-compose.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function check(...)
  return assert(crown.exec({ "/usr/bin/python3", "tools/kubernetes/check.py", ... }, { timeout = 120 }))
end

describe("the manifests for Kubernetes", function()
  it("are what its API takes", function()
    local result = check("tools/kubernetes/reports.yaml", "tools/kubernetes/leader.yaml")
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.matches("^%d+ manifests: ok\n$", result.stdout)
  end)

  for what, slip in pairs {
    ["a field that there is not"] = { "maxUnavailable: 1\n", "maxUnavailabel: 1\n" },
    ["a value of another type"] = { "replicas: 3", "replicas: three" },
    ["a field that is missing"] = { "%- name: reports\n", "- workingDir: /\n" },
    ["a kind that there is not"] = { "kind: Deployment", "kind: Deploiment" },
  } do
    it("are refused with " .. what, function()
      local text, count = read_file("tools/kubernetes/reports.yaml"):gsub(slip[1], slip[2])
      assert.is_true(count > 0)
      assert.equal(1, check(write_file(tempdir() .. "/slip.yaml", text)).code)
    end)
  end

  it("ask the probes for pages that there are", function()
    local text = read_file "tools/kubernetes/reports.yaml" .. read_file "tools/kubernetes/leader.yaml"
    local pages = read_file "lua/crown/web/init.lua"
    local asked = 0
    for path in text:gmatch "path: (/%l+)" do
      assert.is_truthy(pages:find('"' .. path .. '"', 1, true), path)
      asked = asked + 1
    end
    assert.is_true(asked >= 3)
  end)
end)

describe("the Compose file", function()
  local function config(path)
    return assert(crown.exec({ "docker-compose", "--file", path, "config" }, { timeout = 60 }))
  end

  it("is what docker-compose takes, and has three candidates with a store", function()
    local result = config "tools/container/compose.yml"
    assert.equal(0, result.code, result.stderr)
    assert.matches("replicas: 3\n", result.stdout)
    assert.matches("CROWN_ORACLE: postgres://", result.stdout)
  end)

  it("is refused with a field that there is not", function()
    local text, count = read_file("tools/container/compose.yml"):gsub("stop_grace_period:", "stop_grace_time:")
    assert.equal(1, count)
    local result = config(write_file(tempdir() .. "/compose.yml", text))
    assert.not_equal(0, result.code)
    assert.matches("stop_grace_time", result.stderr)
  end)
end)
