-- An oracle in a container of Azure's Blob storage: a blob for each record, written where it still has the ETag that was read.
--
--   azure_blob://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX
--
-- The account's key is in AZURE_STORAGE_KEY, as `az storage account keys list` shows it, or in the file that `key_file` names,
-- which is read with each request. The blobs must not be leased by others, and the container needs no version of a blob.
-- crown.text and crown.core are no public modules of crown-lua: try this again by `check --laws` with each new version of it.
local crown = require "crown"
local base64 = require "crown.text.base64"
local crypto = require "crown.core.crypto"
local url = require "crown.text.url"

local VERSION = "2021-08-06"
local SIGNED = { "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
  "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range" }
local CHANGED = { ConditionNotMet = true, TargetConditionNotMet = true, BlobAlreadyExists = true }

local function key_of(self)
  local text = os.getenv "AZURE_STORAGE_KEY"
  if self.options.key_file then
    local file, problem = io.open(self.options.key_file)
    if not file then return nil, problem end
    text = file:read "*a"
    file:close()
  end
  local key = text and base64.decode((text:gsub("%s", "")))
  if not key or key == "" then return nil, "there is no account key: set AZURE_STORAGE_KEY, or name a file by key_file" end
  return key
end

-- The signature of a Shared Key: one line for each of some headers, all of x-ms-…, the path and the query.
local function signature(self, key, method, path, query, headers)
  local lines, own = { method }, {}
  local small = {}
  for name, value in pairs(headers) do
    small[name:lower()] = value
    if name:lower():find "^x%-ms%-" then own[#own + 1] = ("%s:%s"):format(name:lower(), value) end
  end
  for _, name in ipairs(SIGNED) do lines[#lines + 1] = small[name] or "" end
  table.sort(own)
  for _, line in ipairs(own) do lines[#lines + 1] = line end
  lines[#lines + 1] = "/" .. self.account .. path
  for _, one in ipairs(query) do lines[#lines + 1] = ("%s:%s"):format(one[1], one[2]) end
  return base64.encode(crypto.hmac_sha256(key, table.concat(lines, "\n")))
end

-- `query` in the order of its names. @return the answer; or nil and a reason
local function ask(self, method, path, query, body, headers)
  local key, problem = key_of(self)
  if not key then return nil, problem end
  headers = headers or {}
  headers["x-ms-date"], headers["x-ms-version"] = os.date("!%a, %d %b %Y %H:%M:%S GMT"), VERSION
  if body then headers["Content-Type"], headers["Content-Length"] = "application/json", #body end
  headers.Authorization = ("SharedKey %s:%s"):format(self.account, signature(self, key, method, path, query, headers))
  headers["Content-Length"] = nil -- the client says it, too
  local words = {}
  for i, one in ipairs(query) do words[i] = ("%s=%s"):format(one[1], url.encode(one[2])) end
  local scheme = self.options.plain and "http" or "https"
  return crown.http.request { url = ("%s://%s%s?%s"):format(scheme, self.host, path, table.concat(words, "&")), method = method,
    body = body, headers = headers, timeout = self.timeout, ca = self.options.ca }
end

local function refused(answer)
  return nil, ("Azure answered %d %s"):format(answer.status, answer.headers["x-ms-error-code"] or "")
end

-- A name may have characters that a path does not keep as they are; the end keeps it from being one of the dots.
local function path_of(self)
  return ("/%s/%s.json"):format(self.container, url.encode(self.prefix .. url.encode(self.name), "/"))
end

local function read(self)
  local answer, problem = ask(self, "GET", path_of(self), {})
  if not answer then return nil, problem end
  if answer.status == 404 and answer.headers["x-ms-error-code"] == "BlobNotFound" then return false end
  if answer.status == 200 and answer.headers.etag then return answer.body, answer.headers.etag end
  return refused(answer)
end

-- A write that went out twice, on a connection that ended, is refused for its own success.
local function not_written(self, text)
  local there, version = read(self)
  if there == nil then return nil, version end
  return there == text and version
end

return require("crown.oracle.cas").oracle {
  word = "azure_blob",
  init = function(self)
    local host, container, prefix = tostring(self.options.url):match "^[%l_]+://([%w.:-]+)/([%w-]+)/?([%w/_-]*)"
    if not host then return nil, "the URL is written azure_blob://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX" end
    self.host, self.container, self.account = host, container, self.options.account or host:match "^[^.]*"
    self.prefix = prefix ~= "" and prefix:gsub("/*$", "") .. "/" or ""
    local key, problem = key_of(self)
    return key ~= nil, problem
  end,
  read = read,
  write = function(self, text, version)
    local headers = { ["x-ms-blob-type"] = "BlockBlob", [version and "If-Match" or "If-None-Match"] = version or "*" }
    local answer, problem = ask(self, "PUT", path_of(self), {}, text, headers)
    if not answer then return nil, problem end
    if answer.status == 201 and answer.headers.etag then return answer.headers.etag end
    if CHANGED[answer.headers["x-ms-error-code"]] then return not_written(self, text) end
    return refused(answer)
  end,
  names = function(self)
    local names, after = {}, ""
    repeat
      local answer, problem = ask(self, "GET", "/" .. self.container, { { "comp", "list" }, { "marker", after },
        { "prefix", self.prefix }, { "restype", "container" } })
      if not answer then return nil, problem end
      if answer.status ~= 200 then return refused(answer) end
      for found in answer.body:gmatch "<Name>([^<]*)%.json</Name>" do
        names[#names + 1] = url.decode(found:sub(#self.prefix + 1))
      end
      after = answer.body:match "<NextMarker>([^<]+)</NextMarker>"
    until not after
    return names
  end,
}
