--- The help of the status page: what each alarm means, what to do, and where more stands.
-- @internal crown.web.help

local advice = require "crown.web.advice"
local html = require "crown.web.html"

local help = {}

local INTRODUCTION = [[
<p><em>This host</em> shows what one runtime knows: whether it leads, and why not. <em>The store</em> shows what the store says of
all hosts. The name of an election leads to the terms that this host has seen.</p>
<p>The pages docs/troubleshooting.md and docs/how-to/monitoring.md say more: they are in share/doc/crown-lua on each host.</p>]]

local function section(one)
  return ('<section id="%s"><h2>%s</h2>\n<p><b>%s</b></p>\n<p>%s</p></section>'):format(one.key,
    html.escape((one.text:gsub("^%l", string.upper))), html.escape(one.first), html.escape(one.more))
end

--- Renders it.
-- @string version of crown-lua
-- @number pid of the runtime
-- @treturn string HTML
function help.page(version, pid)
  return html.page { here = "help", title = "Help – crown-lua", heading = "What to do", version = version, pid = pid,
    main = INTRODUCTION .. html.map(advice, section) }
end

return help
