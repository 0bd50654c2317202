--- Where the API server is, and how one logs in there: from a kubeconfig, from a pod's service account, or from the options
-- alone. Files are read again at each look: tokens live about an hour and are replaced on the disk.
-- @internal crown.kubernetes.place

local base64 = require "crown.text.base64"
local files = require "crown.core.files"
local json = require "crown.text.json"
local read_file = require "crown.text.read_file"
local yaml = require "crown.kubernetes.yaml"

local place = {}

local ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

-- What a kubeconfig may hold and this client cannot do, with what to do instead.
local REFUSED = {
  exec = "its user logs in by the plugin '%s' (exec), which crown-lua does not run: give a service account's token "
    .. "('kubectl create token NAME') by token_file=PATH",
  ["auth-provider"] = "its user logs in by an auth-provider, which no current kubectl does either: give a token by "
    .. "token_file=PATH",
  username = "its user logs in by a password, which no API server since 1.19 takes: give a token by token_file=PATH",
  as = "its user acts as somebody else (as), which crown-lua does not: name a user of its own",
  ["proxy-url"] = "its cluster is reached through a proxy (proxy-url), which crown-lua does not use",
  ["tls-server-name"] = "its cluster has a tls-server-name, which crown-lua does not use: name the server as its certificate "
    .. "does",
}

-- The token's text without the line's end.
local function token_in(path)
  local text, problem = read_file(path)
  if not text then return nil, ("the token cannot be read: %s"):format(problem) end
  local token = text:match "^%s*(.-)%s*$"
  if token == "" then return nil, ("the token's file is empty: %s"):format(path) end
  return token
end

local function refuse(part)
  for key, words in pairs(REFUSED) do
    if part[key] ~= nil then
      return words:find "%%s" and words:format(tostring(type(part[key]) == "table" and part[key].command or "?")) or words
    end
  end
end

local function named(list, name, what)
  for _, entry in ipairs(type(list) == "table" and list or {}) do
    if type(entry) == "table" and entry.name == name then return type(entry[what]) == "table" and entry[what] or {} end
  end
end

-- A path in a kubeconfig counts from the file's folder.
local function beside(file, path)
  if type(path) ~= "string" or path == "" then return nil end
  return path:sub(1, 1) == "/" and path or (file:match "^(.*/)" or "") .. path
end

local function decoded(part, key)
  local value = part[key]
  if type(value) ~= "string" or value == "" then return nil end
  return base64.decode(value) or error({ problem = ("%s is no base64"):format(key) }, 0)
end

-- @return the context, its cluster and its user
local function chosen(config, wanted)
  local name = wanted or config["current-context"]
  if not name or name == "" then error({ problem = "it has no current-context: give context=NAME" }, 0) end
  local context = named(config.contexts, name, "context")
  if not context then error({ problem = ("it has no context '%s'"):format(name) }, 0) end
  local cluster = named(config.clusters, context.cluster, "cluster")
  if not cluster then error({ problem = ("it has no cluster '%s'"):format(tostring(context.cluster)) }, 0) end
  return context, cluster, named(config.users, context.user, "user") or {}
end

local function read_kubeconfig(file, options)
  local text, problem = read_file(file)
  if not text then error({ problem = problem }, 0) end
  local config
  if text:find "^%s*{" then config = json.object(text) else config, problem = yaml.read(text) end
  if not config then error({ problem = problem or "it is no JSON" }, 0) end
  local context, cluster, user = chosen(config, options.context)
  problem = refuse(user) or refuse(cluster)
  if problem then error({ problem = problem }, 0) end
  local found = { base = cluster.server, namespace = context.namespace, insecure = cluster["insecure-skip-tls-verify"] == true,
    ca = beside(file, cluster["certificate-authority"]), ca_data = decoded(cluster, "certificate-authority-data"),
    cert = beside(file, user["client-certificate"]), cert_data = decoded(user, "client-certificate-data"),
    key = beside(file, user["client-key"]), key_data = decoded(user, "client-key-data"), token = user.token }
  if type(found.base) ~= "string" then error({ problem = "its cluster names no server" }, 0) end
  local token_file = beside(file, user.tokenFile)
  if token_file then
    found.token, problem = token_in(token_file)
    if not found.token then error({ problem = problem }, 0) end
  end
  return found
end

local function of_kubeconfig(file, options)
  local fine, found = pcall(read_kubeconfig, file, options)
  if fine then return found end
  if type(found) ~= "table" then error(found, 0) end
  return nil, ("kubeconfig %s: %s"):format(file, found.problem)
end

local function of_pod(host, port)
  local token, problem = token_in(ACCOUNT .. "/token")
  if not token then return nil, problem end
  local authority = host:find(":", 1, true) and "[" .. host .. "]" or host
  return { base = ("https://%s:%s"):format(authority, port or "443"), ca = ACCOUNT .. "/ca.crt", token = token,
    namespace = (read_file(ACCOUNT .. "/namespace") or ""):match "^%s*(.-)%s*$" }
end

-- @return the path of a kubeconfig; or nil and why there is none
local function kubeconfig_of(options)
  if options.kubeconfig then return options.kubeconfig end
  local listed = os.getenv "KUBECONFIG"
  if listed and listed:find(":", 1, true) then return nil, "KUBECONFIG names several files: name one by kubeconfig=PATH" end
  if listed and listed ~= "" then return listed end
  local home = os.getenv "HOME"
  if home and files.readable(home .. "/.kube/config") then return home .. "/.kube/config" end
  return nil, "this is no pod with a service account, and there is no kubeconfig: give kubeconfig=PATH, or server=URL"
end

local function found_by(options)
  local host = os.getenv "KUBERNETES_SERVICE_HOST"
  if options.server and not options.kubeconfig then return { base = options.server } end
  if host and host ~= "" and not options.kubeconfig then return of_pod(host, os.getenv "KUBERNETES_SERVICE_PORT") end
  local file, problem = kubeconfig_of(options)
  if not file then return nil, problem end
  return of_kubeconfig(file, options)
end

-- The user's own options go before what a file says.
local function add_options(found, options)
  found.base = (options.server or found.base):gsub("/+$", "")
  for _, name in ipairs { "ca", "cert", "key" } do
    if options[name] then found[name], found[name .. "_data"] = options[name], nil end
  end
  if options.token_file then
    local token, problem = token_in(options.token_file)
    if not token then return nil, problem end
    found.token = token
  end
  if not found.base:find "^https?://[^/?#@]+[^?#]*$" then return nil, "the API server's URL is written https://host:port" end
  return found
end

--- Looks where the API server is.
-- @tparam table options `server`, `kubeconfig`, `context`, `token_file`, `ca`, `cert`, `key`, where the user gives them
-- @treturn table `{ base =, namespace =, token =, insecure =, ca =, cert =, key =, ca_data =, cert_data =, key_data = }`, files
-- as paths, data as PEM; or nil and a message
function place.find(options)
  local found, problem = found_by(options)
  if not found then return nil, problem end
  return add_options(found, options)
end

return place
