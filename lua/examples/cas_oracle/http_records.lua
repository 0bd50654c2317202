-- An oracle over plain HTTP: records that are read with GET and written with PUT, where `If-Match` names the ETag of the one
-- that is replaced, and `If-None-Match: *` says that there must be none. record_server.lua beside this file is such a server,
-- and so are many object stores.
local crown = require "crown"

local function ask(self, method, text, headers)
  return crown.http.request { url = ("%s/%s"):format(self.options.url, self.name), method = method, body = text,
    headers = headers, timeout = self.timeout }
end

return require("crown.oracle.cas").oracle {
  word = "http_records",
  ttl = 6,
  init = function(self)
    if not self.options.url then return nil, "url is required" end
    return true
  end,
  read = function(self)
    local answer, problem = ask(self, "GET")
    if not answer then return nil, problem end
    if answer.status == 404 then return false end
    if answer.status == 200 and answer.headers.etag then return answer.body, answer.headers.etag end
    return nil, "the server answered " .. answer.status
  end,
  write = function(self, text, version)
    local condition = version and { ["If-Match"] = version } or { ["If-None-Match"] = "*" }
    local answer, problem = ask(self, "PUT", text, condition)
    if not answer then return nil, problem end
    if answer.status == 412 then return false end
    if answer.status == 200 then return answer.headers.etag or true end
    return nil, "the server answered " .. answer.status
  end,
  names = function(self)
    local answer, problem = crown.http.request { url = self.options.url, timeout = self.timeout }
    if not answer then return nil, problem end
    local names = {}
    for name in answer.body:gmatch "[^\n]+" do names[#names + 1] = name end
    return names
  end,
}
