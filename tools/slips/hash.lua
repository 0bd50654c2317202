--- A number for a text: FNV-1a, and a last mix, so that what differs in its end differs in all of it.
return function(text)
  local value = 14695981039346656037ULL
  for i = 1, #text do value = (value + text:byte(i)) * 1099511628211ULL end
  value = (value + value / 4294967296ULL) * 2685821657736338717ULL
  value = value + value / 4294967296ULL
  return tonumber(value % 4503599627370496ULL)
end
