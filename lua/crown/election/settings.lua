--- What the command line and the environment say for the whole runtime.
-- @internal crown.election.settings

local given = os.getenv "CROWN_ORACLE"
given = given ~= "" and given or nil

local settings = {
  oracle = given or "file:", -- of elections that name none
  named = given ~= nil,      -- whether somebody has named it
  ttl = nil,        -- of oracles that name none
  checking = false, -- `crown-lua check`: declare, but campaign for nothing
  ignored = setmetatable({}, { __mode = "v" }), -- elections whose oracle ignores them, by settings.key
  declared = {},    -- every election, in order, while checking
}

--- What a candidate is known by here.
-- @string name of the election
-- @string[opt] node where it was given one of its own
-- @treturn string
function settings.key(name, node)
  return node and ("%s\n%s"):format(name, node) or name
end

return settings
