--- The real API server, and candidates of client-go beside it, where `make kubernetes-peer` has built them. It is asked as the small
-- one (support.kubernetes_server), and its logins are the same: the tokens `all`, `none`, `plain` and `named`.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local port = require "support.port"
local Server = require "support.kubernetes_server"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local Peer = setmetatable({}, { __index = Server })
Peer.__index = Peer

local FOLDER = os.getenv "KUBERNETES_PEER" or os.getenv "HOME" .. "/.cache/crown-lua/kubernetes"
local API_SERVER, ELECTOR = FOLDER .. "/bin/kube-apiserver", FOLDER .. "/bin/elector"
local RBAC = "//apis/rbac.authorization.k8s.io/v1/namespaces/spec/"
local GROUP = "coordination.k8s.io"
local READY_SECONDS = 90

--- Whether both are there.
Peer.is_there = files.executable(API_SERVER) and files.executable(ELECTOR) and true or false

--- Why they are not, for busted's pending.
Peer.MISSING = "there is no kube-apiserver in " .. FOLDER .. ": make kubernetes-peer"

local function sh(command, ...)
  local result = assert(crown.exec({ "sh", "-c", command, ... }, { timeout = 60 }))
  assert(result.code == 0, result.stderr)
end

local function role(self, name, rules)
  assert(self:ask("POST", RBAC .. "roles", { apiVersion = "rbac.authorization.k8s.io/v1", kind = "Role",
    metadata = { name = name }, rules = rules }) == 201)
  assert(self:ask("POST", RBAC .. "rolebindings", { apiVersion = "rbac.authorization.k8s.io/v1", kind = "RoleBinding",
    metadata = { name = name }, roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = name },
    subjects = { { kind = "User", apiGroup = "rbac.authorization.k8s.io", name = name } } }) == 201)
end

local function rule(verbs, name)
  return { apiGroups = { GROUP }, resources = { "leases" }, resourceNames = name and { name }, verbs = verbs }
end

local function admit(self)
  assert(self:ask("POST", "//api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { name = "spec" } }) == 201)
  role(self, "plain", { rule { "get", "create", "update" } })
  role(self, "named", { rule { "create" }, rule({ "get", "update", "watch" }, "only") })
end

--- Starts an API server over an etcd of its own.
-- @treturn Peer as support.kubernetes_server; besides `cert` and `key`, the files of a client that may do all
function Peer.start()
  local self = setmetatable({ dir = tempdir(), port = port.free(), authority = authority(), etcd = Etcd.start() }, Peer)
  self.base = "https://127.0.0.1:" .. self.port
  self.token_file = self:token "all"
  self.cert, self.key = self.dir .. "/u.crt", self.dir .. "/u.key"
  write_file(self.dir .. "/tokens.csv", 'all,admin,1,"system:masters"\nnone,nobody,2\nplain,plain,3\nnamed,named,4\n')
  sh([[cd "$0" && openssl genrsa -out sa.key 2048 && openssl rsa -in sa.key -pubout -out sa.pub &&
    openssl req -newkey rsa:2048 -nodes -keyout u.key -out u.csr -subj /O=system:masters/CN=admin &&
    openssl x509 -req -in u.csr -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -out u.crt -days 2]], self.dir, self.authority)
  self:up()
  admit(self)
  return self
end

--- Starts the process; what it had is in etcd.
function Peer:up()
  local dir, certificates = self.dir, self.authority
  self.process = Candidate.start { program = API_SERVER, node = "kubernetes", log = dir .. "/log", args = {
    "--etcd-servers=" .. self.etcd.client, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
    "--secure-port=" .. self.port, "--cert-dir=" .. dir, "--tls-cert-file=" .. certificates .. "/s.crt",
    "--tls-private-key-file=" .. certificates .. "/s.key", "--client-ca-file=" .. certificates .. "/ca.crt",
    "--token-auth-file=" .. dir .. "/tokens.csv", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
    "--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
    "--service-account-key-file=" .. dir .. "/sa.pub", "--service-account-signing-key-file=" .. dir .. "/sa.key",
    "--disable-admission-plugins=ServiceAccount" } }
  eventually(function()
    local answer = crown.http.request { url = self.base .. "/readyz", bearer = "all", timeout = 5, ca = certificates .. "/ca.crt" }
    return answer and answer.status == 200
  end, READY_SECONDS)
end

--- Ends the process, as in a crash.
function Peer:down()
  self.process:hurt_self "KILL"
  self.process:wait(20)
end

function Peer:freeze() self.process:freeze() end
function Peer:thaw() self.process:thaw() end

--- Starts a candidate of client-go's, whose command ticks while it leads.
-- @string node
-- @tparam table options `ticks`, the file that is ticked into; `duration`, `deadline`, `retry` in seconds (4, 3, 0.5); `name` of
-- the Lease ("spec"); `port` of a way to the server
-- @treturn Candidate
function Peer:elector(node, options)
  local seconds = function(value) return ("%gs"):format(value) end
  return Candidate.start { program = ELECTOR, node = node, log = ("%s/%s.log"):format(self.dir, node),
    env = { CROWN_EPOCH = "0", CROWN_ROLE = "leader" }, args = {
      "-server", self.base:gsub("%d+$", options.port or self.port), "-token", "all", "-ca", self.authority .. "/ca.crt",
      "-namespace", "spec", "-name", options.name or "spec", "-id", node, "-duration", seconds(options.duration or 4),
      "-deadline", seconds(options.deadline or 3), "-retry", seconds(options.retry or 0.5), "--",
      os.getenv "CROWN_TICKER" or "build/ticker", options.ticks } }
end

function Peer:destroy()
  if not self.process.code then
    self.process:hurt_self "CONT"
    self:down()
  end
  self.etcd:destroy()
end

return Peer
