-- The manifests for Kubernetes, against the API as its Python client publishes it; the Compose file, by docker-compose.
local crown = require "crown"
local manifests_of = require "support.manifests"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function check(...)
  return assert(crown.exec({ "/usr/bin/python3", "tools/kubernetes/check.py", ... }, { timeout = 120 }))
end

local FILES = { "tools/kubernetes/reports.yaml", "tools/kubernetes/leader.yaml" }

describe("the manifests for Kubernetes", function()
  it("are what its API takes", function()
    local result = check("tools/kubernetes/lease.yaml", unpack(FILES))
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

  -- pod_spec.lua has the probes.
  it("select pods that there are, and name ports that these have", function()
    local manifests, pods, selected = manifests_of(unpack(FILES)), {}, 0
    for _, manifest in ipairs(manifests) do
      local template = manifest.spec and manifest.spec.template
      if template then pods[template.metadata.labels.app] = template.spec.containers[1] end
    end
    for _, manifest in ipairs(manifests) do
      local selector = manifest.spec and manifest.spec.selector
      if selector then
        local pod = pods[(selector.matchLabels or selector).app]
        assert.is_truthy(pod, manifest.kind .. " " .. manifest.metadata.name)
        for _, port in ipairs(manifest.kind == "Service" and manifest.spec.ports or {}) do
          assert.equal(port.targetPort or port.port, pod.ports[1][port.targetPort and "name" or "containerPort"])
        end
        selected = selected + 1
      end
    end
    assert.equal(5, selected)
  end)

  it("have a balancer that asks the pods' Service for the election's leader", function()
    local config, services, args = nil, {}, nil
    for _, manifest in ipairs(manifests_of(unpack(FILES))) do
      if manifest.kind == "ConfigMap" then config = manifest.data["haproxy.cfg"] end
      if manifest.kind == "Service" then services[manifest.metadata.name .. ":" .. manifest.spec.ports[1].port] = manifest.spec end
      if manifest.metadata.name == "reports" and manifest.kind == "Deployment" then
        args = " " .. table.concat(manifest.spec.template.spec.containers[1].args, " ")
      end
    end
    local name = config:match "option httpchk GET /leader/(%S+)\n"
    assert.is_truthy(args:find(" " .. name .. " -- ", 1, true))
    assert.equal("None", services[config:match "server%-template pod 3 (%S+) check "].clusterIP)
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
