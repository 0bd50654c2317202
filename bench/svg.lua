--- What the plots are drawn with: a page, words on it, and logarithmic axes.
local Svg = {}
Svg.__index = Svg

local STYLE = [[
text{font:13px system-ui,sans-serif;fill:#1b1f24}.s{font-size:11px;fill:#57606a}.b{font-weight:600}
.grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#57606a;stroke-width:1}
.dot{fill:#3b6ea8;fill-opacity:.35}.median{stroke:#c53030;stroke-width:2}
.ours{stroke:#2f855a;fill:none;stroke-width:2}.ours-dot{fill:#2f855a}.peer{stroke:#b7791f;fill:none;stroke-width:2}.peer-dot{fill:#b7791f}
]]

local function escape(text)
  return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

--- A new page.
-- @number width
-- @number height
-- @string title
-- @string description for who does not see it
function Svg.new(width, height, title, description)
  local self = setmetatable({ parts = {} }, Svg)
  self:put('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">',
    width, height, width, height)
  self:put('<title id="t">%s</title><desc id="d">%s</desc>', escape(title), escape(description))
  self.parts[#self.parts + 1] = "<style>\n" .. STYLE .. "</style>"
  self:put('<rect width="%d" height="%d" fill="#fff"/>', width, height)
  return self
end

function Svg:put(format, ...)
  self.parts[#self.parts + 1] = format:format(...)
end

--- Words; `class` may be nil, `anchor` "start", "middle" or "end".
function Svg:text(x, y, anchor, class, text)
  self:put('<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>', x, y, anchor, class and (' class="%s"'):format(class) or "",
    escape(text))
end

function Svg:line(x1, y1, x2, y2, class)
  self:put('<path d="M%.1f %.1fL%.1f %.1f" class="%s"/>', x1, y1, x2, y2, class)
end

function Svg:dot(x, y, radius, class)
  self:put('<circle cx="%.1f" cy="%.1f" r="%.1f" class="%s"/>', x, y, radius, class)
end

--- A line through points, each `{ x, y }`.
function Svg:path(points, class)
  local steps = {}
  for i, point in ipairs(points) do steps[i] = ("%s%.1f %.1f"):format(i == 1 and "M" or "L", point[1], point[2]) end
  self:put('<path d="%s" class="%s"/>', table.concat(steps), class)
end

--- Writes the page to a file.
function Svg:save(path)
  local file = assert(io.open(path, "w"))
  file:write(table.concat(self.parts, "\n"), "\n</svg>\n")
  file:close()
end

--- A logarithmic axis: where a value lies between two places. What is less than the least lies at its place.
-- @number least
-- @number most
-- @number from the place of the least
-- @number to the place of the most
-- @treturn function of a value
function Svg.log_axis(least, most, from, to)
  return function(value)
    local part = math.log(math.max(value, least) / least) / math.log(most / least)
    return from + math.min(1, part) * (to - from)
  end
end

return Svg
