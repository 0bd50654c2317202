-- The Deployment's pods, as a kubelet makes them: the image's environment, the manifest's user, words, probes and volumes. An
-- emptyDir may be written by everybody (mode 2777, group fsGroup). The worker and the store's URL are the spec's own.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local manifests_of = require "support.manifests"
local other_users = require "support.other_users"
local port = require "support.port"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

local SECONDS = 30

-- @return the pod that the Deployment makes three of
local function pod_of_manifest()
  for _, manifest in ipairs(manifests_of "tools/kubernetes/reports.yaml") do
    if manifest.kind == "Deployment" then return manifest.spec.template.spec end
  end
end

local function named(list, name)
  for _, entry in ipairs(list) do
    if entry.name == name then return entry end
  end
end

(other_users and describe or pending)("a pod of the Deployment", function()
  local pod = pod_of_manifest()
  local container = pod.containers[1]
  local server, members

  setup(function()
    server, members = Redis.start(), {}
  end)
  teardown(function()
    for _, member in ipairs(members) do member:destroy() end
    server:destroy()
  end)

  local function as_user()
    local user = pod.securityContext
    return ("setpriv --reuid=%d --regid=%d --groups=%d --bounding-set=-all --inh-caps=-all --no-new-privs --")
      :format(user.runAsUser, user.runAsGroup, user.fsGroup)
  end

  local function environment(node, number)
    local env = { CROWN_NODE = node, CROWN_ORACLE = server.quick .. "&ttl=15", CROWN_HTTP = "127.0.0.1:" .. number,
      PATH = program:match "^(.*)/" .. ":/usr/bin:/bin" }
    for name, value in read_file("Containerfile"):gmatch "\nENV (%S+)=(%S+)" do env[name] = value end
    return env
  end

  local function start(node)
    local mount, words = container.volumeMounts[1].mountPath, { "run" }
    assert.equal("run", container.args[1])
    assert.equal("report-worker", container.args[#container.args])
    for i = 2, #container.args - 1 do words[i] = container.args[i] end
    words[#words + 1], words[#words + 2] = "sleep", "1000"
    local number = port.free()
    local member = Candidate.start { program = "/bin/bash", node = node, log = tempdir() .. "/log",
      env = environment(node, number), args = { "-c", ([[
        exec unshare --mount bash -c '
          mount -t tmpfs none /run && mkdir -p %s && mount -t tmpfs -o mode=2777,gid=%d none %s && cd / && exec %s "$@"' bash "$@"]])
        :format(mount, pod.securityContext.fsGroup, mount, as_user()), "bash", program, unpack(words) } }
    member.port = number
    members[#members + 1] = member
    return member
  end

  local function status(member, path)
    local asked, answer = pcall(http.ask, member.port, "GET " .. path)
    return asked and answer.status
  end

  -- What a probe asks for of the container's port by its name.
  local function asked_by(probe)
    local action = container[probe].httpGet
    assert.equal(named(container.env, "CROWN_HTTP").value:match ":(%d+)$",
      ("%d"):format(named(container.ports, action.port).containerPort))
    return action.path
  end

  it("answers its probes, and hands over when it is about to be told to end", function()
    local one = start "one"
    eventually(function() return status(one, "/leader/reports") == 200 end, SECONDS)
    local two = start "two"
    eventually(function() return status(two, "/leader/reports") == 503 end, SECONDS)
    for _, probe in ipairs { "startupProbe", "livenessProbe", "readinessProbe" } do
      for _, member in ipairs { one, two } do assert.equal(200, status(member, asked_by(probe)), probe) end
    end

    local command = { "/bin/bash", "-c", ("exec nsenter --mount=/proc/%d/ns/mnt %s \"$@\""):format(one.pid, as_user()), "bash" }
    for _, word in ipairs(container.lifecycle.preStop.exec.command) do command[#command + 1] = word end
    local said = assert(crown.exec(command, { timeout = SECONDS, env = environment("one", one.port) }))
    assert.matches("asked runtime %d+ to step down from 'reports'", said.stdout, nil, nil, said.stderr)
    eventually(function() return status(two, "/leader/reports") == 200 end, SECONDS)
    assert.equal(503, status(one, "/leader/reports"))

    two:signal "TERM"
    assert.equal(0, two:wait(pod.terminationGracePeriodSeconds))
    eventually(function() return status(one, "/leader/reports") == 200 end, SECONDS)
  end)
end)
