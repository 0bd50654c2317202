--- What our manifests for Kubernetes hold.
local crown = require "crown"

local READ = [[import json, sys, yaml
print(json.dumps([d for f in sys.argv[1:] for d in yaml.safe_load_all(open(f))]))]]

--- @string ... paths
-- @treturn table an array of all their objects
return function(...)
  local result = assert(crown.exec({ "/usr/bin/python3", "-c", READ, ... }, { timeout = 60 }))
  assert(result.code == 0, result.stderr)
  return crown.json.decode(result.stdout)
end
