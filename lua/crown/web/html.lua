--- What the pages of the endpoint are made of.
-- @internal crown.web.html

local style = require "crown.web.style"

local html = {}

--- Makes text safe inside of HTML.
-- @param text anything that tostring takes
-- @treturn string
function html.escape(text)
  return (tostring(text):gsub('[&<>"\']', { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
    ["'"] = "&#39;" }))
end

--- The results of a function for each of a list, as lines.
-- @tparam table list
-- @tparam function fn
-- @treturn string
function html.map(list, fn)
  local parts = {}
  for i = 1, #list do parts[i] = fn(list[i]) end
  return table.concat(parts, "\n")
end

--- A time of the host's wall clock, with its zone.
-- @number[opt] time now
-- @treturn string
function html.moment(time)
  return os.date("%Y-%m-%d %H:%M:%S %z", time)
end

--- A table.
-- @string[opt] id
-- @tparam table heading
-- @string rows HTML
-- @treturn string
function html.table_of(id, heading, rows)
  return ('<table%s>\n<thead><tr>%s</tr></thead>\n<tbody>\n%s\n</tbody>\n</table>'):format(id and (' id="%s"'):format(id) or "",
    html.map(heading, function(word) return '<th scope="col">' .. word .. "</th>" end), rows)
end

--- A row, whose cells know their heading, as narrow screens show it beside them.
-- @tparam table heading
-- @tparam table cells an array of texts
-- @tparam function class_of `class_of(i, text)` → CSS classes
-- @treturn string
function html.row(heading, cells, class_of)
  local parts = {}
  for i, text in ipairs(cells) do
    parts[i] = ('<td data-label="%s" class="%s">%s</td>'):format(heading[i], class_of(i, text), html.escape(text))
  end
  return "<tr>" .. table.concat(parts) .. "</tr>"
end

local VIEWS = { { "./", "This host" }, { "store", "The store" }, { "help", "Help" } }

local function views(here, up)
  return html.map(VIEWS, function(view)
    return ('<a href="%s%s"%s>%s</a>'):format(up, view[1], view[1] == here and ' aria-current="page"' or "", view[2])
  end)
end

local PAGE = [[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<header><h1>$heading</h1><span class="soft">crown-lua $version, process $pid</span>
$live
<nav aria-label="Views">$views</nav></header>
<main>
$main
</main>
$script</body>
</html>
]]

local LIVE = '<span id="live" class="soft">as of %s; reload for what is new</span>'

--- A whole page.
-- @tparam table of `here`: its address as in VIEWS; `title`, `heading` and `main`, which are HTML; `version`, `pid`; `script`;
-- `up`: "../" where it is below the first page; `is_fixed`: it tells of nothing that changes
-- @treturn string
function html.page(of)
  return (PAGE:gsub("%$(%l+)", { title = of.title, heading = of.heading, main = of.main, version = html.escape(of.version),
    pid = ("%d"):format(of.pid), live = of.is_fixed and "" or LIVE:format(html.moment()), style = style,
    views = views(of.here, of.up or ""), script = of.script and "<script>" .. of.script .. "</script>\n" or "" }))
end

return html
