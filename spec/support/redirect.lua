--- Leads one program's connections to ports of this host elsewhere (redirect.c), as to a proxy before a server that tells its
-- address itself.
local library = (os.getenv "CROWN_TICKER" or "build/ticker"):gsub("ticker$", "redirect.so")

--- What the program's environment needs for that.
-- @tparam table ports an array of `{ from, to }`
-- @tparam[opt] table environment of support.wrong_clock, which it has as well
-- @treturn table
return function(ports, environment)
  local pairs_of, words = {}, {}
  for i, one in ipairs(ports) do pairs_of[i] = ("%d:%d"):format(one[1], one[2]) end
  for key, value in pairs(environment or {}) do words[key] = value end
  words.LD_PRELOAD = words.LD_PRELOAD and library .. ":" .. words.LD_PRELOAD or library
  words.PORTS = table.concat(pairs_of, " ")
  return words
end
