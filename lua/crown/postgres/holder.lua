--- How the holder of a lease is written: the node's name, for people, and the token, which makes it one of its kind.
-- @internal crown.postgres.holder

local holder = {}

--- @treturn string what the tables hold
function holder.of(node, token)
  return node .. "#" .. token
end

--- @treturn string the node's name, or nil for nobody; what others have written is its own name
function holder.node(text)
  if not text or text == "" then return nil end
  return text:match "^(.*)#%x+[-%x]*$" or text
end

return holder
