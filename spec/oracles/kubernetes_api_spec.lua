-- What the API server answers: the small one of the specs and the real one are asked the same.
local crown = require "crown"
local json = require "crown.text.json"
local Peer = require "support.kubernetes_peer"
local Server = require "support.kubernetes_server"

local serial = 0

local function object(name, spec, more)
  local meta = { name = name }
  for key, value in pairs(more or {}) do meta[key] = value end
  return { apiVersion = "coordination.k8s.io/v1", kind = "Lease", metadata = meta, spec = spec }
end

local function held(more)
  local spec = { holderIdentity = "x", leaseDurationSeconds = 5, renewTime = "2026-11-21T22:24:03.500000Z" }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

for kind, start in pairs { ["the small API server"] = Server.start, ["kube-apiserver"] = Peer.start } do
  describe(kind, function()
    local is_there = start == Server.start or Peer.is_there
    local server, name

    local function asks(what, fn)
      it(what, function()
        if not is_there then return pending(Peer.MISSING) end
        serial = serial + 1
        name = "api-" .. serial
        fn()
      end)
    end

    local function answers(code, reason, method, path, body)
      local status, found = server:ask(method, path, body)
      assert.equal(code, status, json.encode(found or {}))
      if reason then assert.equal(reason, found.reason) end
      return found
    end

    setup(function() server = is_there and start() end)
    teardown(function()
      if server then server:destroy() end
    end)

    for _, case in ipairs {
      { "takes times with six decimals", 201, nil, held() },
      { "refuses a time with one decimal", 400, "BadRequest", held { renewTime = "2026-11-21T22:24:03.5Z" } },
      { "refuses a time with none", 400, "BadRequest", held { renewTime = "2026-11-21T22:24:03Z" } },
      { "refuses a duration of 0", 422, "Invalid", held { leaseDurationSeconds = 0 } },
      { "refuses a duration that is not whole", 400, "BadRequest", held { leaseDurationSeconds = 1.5 } },
      { "takes a Lease that nobody holds", 201, nil, { holderIdentity = "", leaseDurationSeconds = 1 } },
    } do
      asks(case[1], function() answers(case[2], case[3], "POST", "", object(name, case[4])) end)
    end

    asks("makes a Lease once, and tells its uid, its version and when that was", function()
      local found = answers(201, nil, "POST", "", object(name, held()))
      assert.equal("string", type(found.metadata.uid))
      assert.matches("^%d+$", found.metadata.resourceVersion)
      assert.matches("^%d+%-%d+%-%d+T%d+:%d+:%d+Z$", found.metadata.creationTimestamp)
      answers(409, "AlreadyExists", "POST", "", object(name, held()))
      assert.same(found.metadata.resourceVersion, answers(200, nil, "GET", "/" .. name).metadata.resourceVersion)
    end)

    asks("takes a write of the version that there is, and no other", function()
      local found = answers(201, nil, "POST", "", object(name, held()))
      found.spec.holderIdentity = "y"
      local made = answers(200, nil, "PUT", "/" .. name, found)
      assert.is_true(tonumber(made.metadata.resourceVersion) > tonumber(found.metadata.resourceVersion))
      answers(409, "Conflict", "PUT", "/" .. name, found)
      made.metadata.resourceVersion = nil
      answers(422, "Invalid", "PUT", "/" .. name, made)
    end)

    asks("makes no new version of a write that changes nothing", function()
      local found = answers(201, nil, "POST", "", object(name, held()))
      assert.equal(found.metadata.resourceVersion, answers(200, nil, "PUT", "/" .. name, found).metadata.resourceVersion)
    end)

    asks("refuses a write to a Lease that was deleted, or made anew, where it names the old one", function()
      local found = answers(201, nil, "POST", "", object(name, held()))
      answers(200, nil, "DELETE", "/" .. name)
      answers(404, "NotFound", "GET", "/" .. name)
      answers(409, "Conflict", "PUT", "/" .. name, found)
      answers(201, nil, "POST", "", object(name, held()))
      answers(409, "Conflict", "PUT", "/" .. name, found)
    end)

    asks("makes a Lease by a write that names neither", function()
      answers(201, nil, "PUT", "/" .. name, object(name, held()))
    end)

    asks("knows no namespace that there is not", function()
      answers(404, "NotFound", "POST", "//apis/coordination.k8s.io/v1/namespaces/nowhere/leases", object(name, held()))
    end)

    asks("says who may not do what", function()
      server.admin = "plain"
      local found = answers(403, "Forbidden", "DELETE", "/" .. name)
      server.admin = "nobody's"
      answers(401, "Unauthorized", "GET", "/" .. name)
      server.admin = nil
      assert.matches('User "plain" cannot delete resource "leases" in API group "coordination.k8s.io" in the namespace "spec"',
        found.message, 1, true)
    end)

    local function watch(query)
      return assert(crown.http.stream { url = ("%s/apis/coordination.k8s.io/v1/namespaces/spec/leases?watch=1%s"):format(server.base,
        query), bearer = "all", ca = server.authority and server.authority .. "/ca.crt" })
    end

    local function event(stream)
      local found = json.object(assert(stream:line(20)))
      return found.type, found.object
    end

    asks("tells a watch how things stand, and what changes", function()
      local found = answers(201, nil, "POST", "", object(name, held()))
      local stream = watch("&timeoutSeconds=30&fieldSelector=metadata.name%3D" .. name)
      local what, told = event(stream)
      assert.same({ "ADDED", found.metadata.resourceVersion }, { what, told.metadata.resourceVersion })
      found.spec.holderIdentity = "y"
      found = answers(200, nil, "PUT", "/" .. name, found)
      what, told = event(stream)
      assert.same({ "MODIFIED", found.metadata.resourceVersion, "Lease" }, { what, told.metadata.resourceVersion, told.kind })
      answers(200, nil, "DELETE", "/" .. name)
      assert.equal("DELETED", (event(stream)))
      stream:close()
    end)

    asks("tells a watch what has changed since a version", function()
      local found = answers(201, nil, "POST", "", object(name, held()))
      local since = found.metadata.resourceVersion
      found.spec.holderIdentity = "y"
      found = answers(200, nil, "PUT", "/" .. name, found)
      local stream = watch(("&timeoutSeconds=30&fieldSelector=metadata.name%%3D%s&resourceVersion=%s"):format(name, since))
      local what, told = event(stream)
      assert.same({ "MODIFIED", found.metadata.resourceVersion }, { what, told.metadata.resourceVersion })
      stream:close()
    end)

    asks("ends a watch in time, in order", function()
      local stream = watch("&timeoutSeconds=1&fieldSelector=metadata.name%3D" .. name)
      local line, _, code = stream:line(20)
      assert.same({ nil, "closed" }, { line, code })
      assert.equal(200, stream:status())
    end)

    asks("tells a watch from a version that is too old that it is gone", function()
      answers(201, nil, "POST", "", object(name, held()))
      server:down()
      server:up()
      local stream = watch "&timeoutSeconds=30&resourceVersion=1"
      local what, told = event(stream)
      assert.same({ "ERROR", 410, "Expired" }, { what, told.code, told.reason })
      stream:close()
    end)

    asks("lists by pages", function()
      for i = 1, 3 do answers(201, nil, "POST", "", object(("%s-%d"):format(name, i), held())) end
      local first = answers(200, nil, "GET", "?limit=2")
      assert.equal(2, #first.items)
      local token = first.metadata.continue:gsub("%W", function(one) return ("%%%02X"):format(one:byte()) end)
      local second = answers(200, nil, "GET", "?limit=2&continue=" .. token)
      assert.is_true(#second.items > 0)
      assert.not_equal(first.items[1].metadata.name, second.items[1].metadata.name)
    end)

    asks("reviews rights", function()
      local function may(token, verb, lease)
        server.admin = token
        local found = answers(201, nil, "POST", "//apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
          apiVersion = "authorization.k8s.io/v1", kind = "SelfSubjectAccessReview", spec = { resourceAttributes = {
            namespace = "spec", group = "coordination.k8s.io", resource = "leases", verb = verb, name = lease } } })
        server.admin = nil
        return found.status.allowed
      end
      assert.same({ true, false, true, false, true }, { may("plain", "update", "only"), may("plain", "watch", "only"),
        may("named", "watch", "only"), may("named", "update", "another"), may("named", "create") })
    end)
  end)
end
