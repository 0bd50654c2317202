-- How a candidate logs in to Kubernetes, and what it is told of its rights, on the small API server of the specs.
local authority = require "support.authority"
local base64 = require "crown.text.base64"
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local kubernetes = require "crown.oracles.kubernetes"
local Players = require "support.kubernetes_players"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local Server = require "support.kubernetes_server"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local KUBECONFIG = [[
apiVersion: v1
kind: Config
current-context: here
contexts:
- context:
    cluster: facade
    namespace: spec
    user: reports
  name: here
- context:
    cluster: facade
    user: plugin
  name: cloud
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: facade
users:
- name: reports
  user:
    tokenFile: token-all
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: aws-iam-authenticator
      env: null
]]

describe("a login to Kubernetes", function()
  local server
  local _, add = Players.of_each_test(function() return "k8s:spec" end)

  local function candidate(options) return add("one", options) end

  setup(function() server = Server.start(authority()) end)
  teardown(function() server:destroy() end)

  local function kubeconfig(name)
    local data = base64.encode(read_file(server.authority .. "/ca.crt"))
    return write_file(("%s/%s"):format(server.dir, name), KUBECONFIG:format(data, server.base))
  end

  it("is that of a kubeconfig: its context, namespace, authority and token", function()
    local one = candidate { url = "k8s:", kubeconfig = kubeconfig "config", trust_empty = true }
    assert.equal("granted", one:claim()[1])
    assert.matches("^one_", server:lease(one.state.name).spec.holderIdentity)
  end)

  it("by a plugin is refused in plain words", function()
    local state, problem = kubernetes.init { url = "k8s:", kubeconfig = kubeconfig "cloud", context = "cloud", crown_name = "x",
      node = "n", token = "t", send = function() end }
    assert.is_nil(state)
    assert.matches("kubeconfig %S+: its user logs in by the plugin 'aws%-iam%-authenticator' %(exec%), which crown%-lua does not run",
      problem)
  end)

  it("is read again when the server does not know the token any more", function()
    local own = Server.start()
    local one = candidate(own:options { trust_empty = true })
    one:win()
    own:trick { token = "replaced" }
    assert.equal("unknown", one:refresh()[1])
    write_file(own.token_file, "replaced\n")
    assert.equal("granted", one:refresh()[1])
    own:destroy()
  end)

  it("that is not known is told with what to look at", function()
    local file = write_file(tempdir() .. "/token", "wrong")
    local verdict = candidate(server:options { token_file = file }):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("it does not know this login (401 Unauthorized)", verdict[2], 1, true)
    assert.is_nil(verdict[2]:find("wrong", 1, true))
  end)

  local function rights(token)
    return assert(kubernetes.rights(server:options { token_file = server:token(token), crown_name = "only" }))
  end

  it("that lacks rights is told which of RBAC's verbs are missing", function()
    assert.same({ "RBAC does not allow 'get' on leases (coordination.k8s.io) in the namespace 'spec'",
      "RBAC does not allow 'create' on leases (coordination.k8s.io) in the namespace 'spec'",
      "RBAC does not allow 'update' on leases (coordination.k8s.io) in the namespace 'spec'",
      warning = rights("none").warning }, rights "none")
    assert.same({}, rights "all")
    local plain = rights "plain"
    assert.equal(0, #plain)
    assert.matches("does not allow 'watch' .*: it asks each 2 s", plain.warning)
    assert.matches("does not allow 'list' .*'crown%-lua info' cannot show", rights("named").warning)
  end)

  it("that lacks a right hears it from the server", function()
    local verdict = candidate(server:options { token_file = server:token "none" }):claim()
    assert.matches('User "nobody" cannot get resource "leases"', verdict[2], 1, true)
  end)

  it("that may see its own Lease alone is enough for the tools, which are asked for that one", function()
    local url = server:url("trust_empty=true&lock=only&ca=" .. server.authority .. "/ca.crt", nil, server:token "named")
    local one = Candidate.start { node = "ann", log = tempdir() .. "/log", args = { "run", "--oracle", url, "only", "sleep", "60" } }
    finally(function() one:destroy() end)
    eventually(function() return #one:pids "child" == 1 end, 20)
    local checked = run { "check", "--store", "--oracle", url, "run", "only", "true" }
    assert.equal(0, checked.code, checked.stdout .. checked.stderr)
    assert.matches("does not allow 'list'.*lets this candidate take part", checked.stdout)
    local shown = run { "info", "--oracle", url, "only" }
    assert.equal(0, shown.code, shown.stderr)
    assert.matches("\nonly +ann ", shown.stdout)
    assert.equal(0, run({ "pause", "--oracle", url, "--keep", "only" }).code)
    assert.matches("paused", run({ "info", "--oracle", url, "only" }).stdout)
    assert.equal(0, run({ "resume", "--oracle", url, "only" }).code)
    local all = run { "info", "--oracle", url }
    assert.equal(3, all.code)
    assert.matches('cannot list resource "leases"', all.stderr, 1, true)
  end)
end)
