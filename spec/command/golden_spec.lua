-- What `status`, `info`, `history` and `evict` print for a reply, on terminals of several widths and on none: a file each in
-- spec/command/golden. REWRITE=1 writes them anew; read them before you keep them.
local crown = require "crown"
local evict = require "crown.command.evict"
local history = require "crown.command.history"
local info = require "crown.command.info"
local read_file = require "crown.text.read_file"
local status = require "crown.command.status"
local stores = require "crown.command.stores"
local write_file = require "support.write_file"

local WIDTHS = { 60, 100, 160 }

local function null_free(value) return value ~= crown.json.null and value or nil end

local VERBS = {
  status = function(reply, columns) return status.text(reply.runtimes, nil, nil, columns) end,
  stores = function(reply, columns) return stores.text(reply.runtimes, columns) end,
  info = function(reply, columns) return info.text(reply.place, reply.elections, reply.health, columns) end,
  history = function(reply, columns)
    return history.text(reply.terms, nil, reply.place, columns):gsub("terms from %S+/history[^;]*;", "terms from DIRECTORY/history;")
  end,
  evict = function(reply)
    local lines = {}
    for i, gone in ipairs(reply.evicted) do
      lines[#lines + 1] = evict.gone_text(reply.name, gone)
      lines[#lines + 1] = evict.next_text(reply.name, null_free(reply.next[i]))
    end
    return table.concat(lines, "\n") .. "\n"
  end,
}

-- Each width of its own reply: laying out changes it.
local function printed(verb, text)
  local parts = {}
  for i = 0, #WIDTHS do
    local columns = WIDTHS[i]
    parts[#parts + 1] = (columns and ("== %d columns\n"):format(columns) or "== no terminal\n")
      .. VERBS[verb](crown.json.decode(text), columns)
  end
  return table.concat(parts, "\n")
end

describe("what is printed for a reply, at each width:", function()
  local date, getenv = os.date, os.getenv

  -- The zone and the characters of one place, wherever this runs.
  before_each(function()
    rawset(os, "date", function(format, time) return date("!" .. format, time) end)
    rawset(os, "getenv", function(name)
      if name == "LC_ALL" then return "C.UTF-8" end
      return getenv(name)
    end)
  end)
  after_each(function()
    rawset(os, "date", date)
    rawset(os, "getenv", getenv)
  end)

  for verb in pairs(VERBS) do
    it(verb, function()
      local base = "spec/command/golden/" .. verb
      local text = printed(verb, read_file(base .. ".json"))
      if os.getenv "REWRITE" then write_file(base .. ".txt", text) end
      assert.equal(read_file(base .. ".txt"), text)
    end)

    it(verb .. ", no line of a table wider than the terminal", function()
      if verb == "evict" then return end
      local text, columns = printed(verb, read_file("spec/command/golden/" .. verb .. ".json")), nil
      for line in text:gmatch "[^\n]+" do
        columns = tonumber(line:match "^== (%d+)") or not line:find "^==" and columns or nil
        local _, width = line:gsub("[^\128-\191]", "")
        assert.is_true(not columns or not line:find "^[┌│├└]" or width <= columns, line)
      end
    end)
  end
end)
