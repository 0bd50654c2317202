-- Whether the prose of the pages named is wrapped. Tables and pictures cannot be broken, and code is as long as it is.
--   luajit tools/check-wrapped.lua PAGE...
local MOST = 100 -- characters

local function check(path)
  local code, number, long = false, 0, 0
  for line in assert(io.lines(path)) do
    number = number + 1
    if line:match "^%s*```" then code = not code end
    local length = select(2, line:gsub("[^\128-\191]", ""))
    if not code and length > MOST and not line:match "^[|!]" then
      print(("%s:%d: %d characters, %d are the most"):format(path, number, length, MOST))
      long = long + 1
    end
  end
  return long
end

local long = 0
for _, path in ipairs(arg) do long = long + check(path) end
os.exit(long == 0 and 0 or 1)
