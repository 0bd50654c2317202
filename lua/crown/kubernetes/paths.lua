--- Paths of the API server.
-- @internal crown.kubernetes.paths

local url = require "crown.text.url"

local paths = {}

local GROUP = "/apis/coordination.k8s.io/v1/namespaces/"

--- Where one asks what one may do.
paths.REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

--- Where the server says which version it is of.
paths.VERSION = "/version"

--- All Leases of a namespace.
-- @string namespace
-- @treturn string
function paths.leases(namespace) return GROUP .. namespace .. "/leases" end

--- A Lease.
-- @string namespace
-- @string name
-- @treturn string
function paths.lease(namespace, name) return paths.leases(namespace) .. "/" .. name end

--- A watch.
-- @string namespace
-- @string[opt] name of the only Lease; nil: all of them
-- @string[opt] version from which on; nil: from how things stand
-- @number seconds after which the server ends it
-- @treturn string
function paths.watch(namespace, name, version, seconds)
  return ("%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d%s%s"):format(paths.leases(namespace), seconds,
    name and "&fieldSelector=metadata.name%3D" .. name or "", version and "&resourceVersion=" .. version or "")
end

--- A page of a list.
-- @string namespace
-- @number most Leases in it
-- @string[opt] after what the page before said
-- @treturn string
function paths.page(namespace, most, after)
  return ("%s?limit=%d%s"):format(paths.leases(namespace), most, after and "&continue=" .. url.encode(after) or "")
end

return paths
