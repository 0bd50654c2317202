--- A register in this process's memory, for the elections of one runtime. A record's text, which has a nonce, is its version.
-- @internal crown.stores.memory

local record = require "crown.register.record"

local Memory = { deletes = true, tells_all = true }
Memory.__index = Memory

local driver = { word = "memory", options = {}, ttl = 30, least = 0.001,
  unasked = "its leases are in the memory of one process; ask that one: 'crown-lua status' and 'abdicate'" }

--- Makes an empty one.
-- @treturn Memory `writes`: how many there were
function driver.open()
  return setmetatable({ texts = {}, writes = 0, told = function() end }, Memory)
end

function Memory:hear(fn)
  self.told = fn
end

function Memory:look(names)
  local answers = {}
  for _, name in ipairs(names) do
    local text = self.texts[name] or false
    answers[name] = { text = text, version = text, memory = "" }
  end
  return answers
end

function Memory:swap(writes)
  local results = {}
  for i, write in ipairs(writes) do
    local stands = (self.texts[write.name] or false) == write.version
    results[i] = stands and (write.text or "")
    if stands then
      self.texts[write.name], self.writes = write.text or nil, self.writes + 1
      local news = write.frees and { text = write.text, version = write.text } or nil
      if record.is_news(write) then self.told(write.name, news, true) end
    end
  end
  return results
end

return driver
