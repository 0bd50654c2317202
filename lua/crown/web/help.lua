--- The help of the status page: what each alarm means, what to do, and where more stands.
-- @internal crown.web.help

local advice = require "crown.web.advice"
local html = require "crown.web.html"

local help = {}

local INTRODUCTION = [[
<p><em>This host</em> shows what one runtime knows: whether it leads, and why not. <em>The store</em> shows what the store says of
all hosts. The name of an election leads to the terms that this host has seen.</p>
<p>The pages that are named below are in share/doc/crown-lua on each host. docs/endpoint.md explains this view.</p>]]

local SECTION = [[
<section id="%s"><h2>%s</h2>
<p><b>%s</b></p>
<p>%s</p>
<p class="soft">In the docs: %s, “%s”</p></section>]]

local function section(one)
  return SECTION:format(one.key, html.escape((one.text:gsub("^%l", string.upper))), html.escape(one.first), html.escape(one.more),
    one.page, html.escape((one.heading:gsub('"', ""))))
end

--- Renders it.
-- @string version of crown-lua
-- @number pid of the runtime
-- @treturn string HTML
function help.page(version, pid)
  return html.page { here = "help", title = "Help – crown-lua", heading = "What to do", version = version, pid = pid,
    is_fixed = true, main = INTRODUCTION .. html.map(advice, section) }
end

return help
