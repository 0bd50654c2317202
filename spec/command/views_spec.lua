-- The views of the status page: what a host knows, what the store says of all hosts, the terms of an election, and the help.
local advice = require "crown.web.advice"
local Browser = require "support.browser"
local calendar = require "crown.text.calendar"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local store_page = require "crown.web.store_page"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MANY = 10000

describe("the views of the status page", function()
  local started, port = {}, nil

  local function start(options)
    options.log = tempdir() .. "/log"
    local one = Candidate.start(options)
    started[#started + 1] = one
    return one
  end

  local function serve(node, ...)
    local one = start { node = node, args = { "--log-level", "info", "--http", "127.0.0.1:0", ... } }
    return eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 30), one
  end

  local function app(text) return write_file(tempdir() .. "/app.lua", 'local crown = require "crown"\n' .. text) end

  local function get(path) return http.ask(port, "GET " .. path) end

  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    started = {}
  end)

  it("show what the store says of all hosts, and orders that stand there", function()
    local redis = Redis.start()
    finally(function() redis:destroy() end)
    local oracle = redis.quick .. "&ttl=3"
    start { node = "far", args = { "run", "--oracle", oracle, "elsewhere", "sleep", "60" } }
    port = serve("near", "run", "--oracle", oracle, "web", "sleep", "60")
    eventually(function()
      local told = crown.json.decode(get("/api/store").body).stores[1]
      return #told.elections == 2 and told.elections[1].node == "far" and told.elections[2].node == "near"
    end, 30)
    assert.equal(0, run({ "pause", "--oracle", oracle, "--why", "the <disks>", "elsewhere" }).code)
    local body = eventually(function()
      local text = get("/store").body
      return text:find "the &lt;disks&gt;" and text
    end, 30)
    assert.matches("<h2>redis://127.0.0.1:%d+</h2>\n<p class=\"soft\">2 elections, 1 led</p>", body)
    assert.is_true(body:find("elsewhere", 1, true) < body:find(">web<", 1, true)) -- what is out of order comes first
    redis:down()
    eventually(function() return get("/store").body:find '<p class="problem">redis at' end, 30)
  end)

  it("show a job that is overdue before all that are well, whichever host ran it last", function()
    local now = calendar.days(2026, 5, 4) * 86400 + 12 * 3600
    local plan = { times = "0 * * * *", zone = "UTC" }
    local function ran(at) return { done = { at = at, slot = at, node = "far", took = 1 }, plan = plan } end
    local list = { { name = "hourly", runs = ran(now - 3 * 3600), ran = "ran on far" }, { name = "web", node = "near", epoch = 1 },
      { name = "well", runs = ran(now), ran = "ran on far" } }
    local body = store_page.render({ { store = "redis://db", elections = list } }, "0", 1, now)
    assert.matches('class="bad">overdue for 2 h', body)
    assert.is_nil(body:match "overdue.*overdue")
    local at = body:find(">hourly<", 1, true)
    assert.is_true(at < body:find(">web<", 1, true) and at < body:find(">well<", 1, true))
  end)

  it("say of a store that cannot be asked why", function()
    port = serve("one", "--oracle", "memory:", app 'crown.elect { name = "web" }')
    eventually(function() return get("/store").body:find '<p class="problem">it cannot be asked: ' end, 20)
  end)

  it("show the terms of an election, the newest first", function()
    local oracle = "file:" .. tempdir()
    port = serve("one", "run", "--oracle", oracle, "web", "sleep", "60")
    eventually(function() return get("/leader/web").status == 200 end, 20)
    run { "evict", "--oracle", oracle, "--force", "--wait", "0", "web" }
    local body = eventually(function()
      local text = get("/history/web").body
      return text:find "leads now" and text:find "evicted" and text
    end, 30)
    assert.is_true(body:find "leads now" < body:find "evicted")
    assert.matches("%d%d:%d%d:%d%d [+-]%d%d%d%d", body)
    assert.equal(404, get("/history/other").status)
    assert.matches('href="%.%./store"', body)
  end)

  local TROUBLE = [[
    crown.elect { name = "a-fine", oracle = "memory:" }
    crown.elect { name = "m-loops", oracle = "memory:", child = { "false" } }
    crown.elect { name = "z-away", oracle = "redis://127.0.0.1:1" }]]

  local function names_in(rows)
    local found = {}
    for name in rows:gmatch 'href="history/([^"]+)"' do found[#found + 1] = name end
    return found
  end

  it("show first what is wrong, with a step to take and a place in the help", function()
    port = serve("one", app(TROUBLE))
    local body = eventually(function()
      local text = get("/").body
      return text:find 'z%-away: the store gives no answer<p>On this host: crown%-lua status' and text:find "m%-loops: the command"
        and text
    end, 20)
    assert.matches('<a href="help#away">More</a>', body)
    assert.same({ "z-away", "m-loops", "a-fine" }, names_in(body:match "<tbody>(.-)</tbody>"))
    local help = get("/help").body
    for _, one in ipairs(advice) do
      local section = assert.is_truthy(help:match(('<section id="%s">(.-)</section>'):format(one.key)), one.key)
      assert.is_truthy(section:find(one.page, 1, true), one.key)
      assert.is_truthy(read_file(one.page):find("# " .. one.heading .. "\n", 1, true), one.heading)
    end
  end)

  describe("in a browser", function()
    local browser
    if not Browser.installed() then return end
    setup(function() browser = Browser.start() end)
    teardown(function() browser:destroy() end)

    local function visit(path)
      browser:visit(("http://127.0.0.1:%d%s"):format(port, path))
    end

    -- The least contrast of what is read on the page with what is behind it, as WCAG counts it.
    local CONTRAST = [[
      const parts = c => c.match(/[\d.]+/g).map(Number);
      const light = c => { const [r, g, b] = parts(c).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b; };
      const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (parts(c).length < 4 || parts(c)[3] > 0) return c; } return "rgb(255, 255, 255)"; };
      return Math.min(...[...document.querySelectorAll("h1, h2, p, a, td, th, li, time, .soft, .badge")].slice(0, 300).map(e => {
        const a = light(getComputedStyle(e).color), b = light(behind(e));
        return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); }));]]

    local TWO, FOUR = { "375 light", "1280 dark" }, { "375 light", "375 dark", "1280 light", "1280 dark" }

    local function is_readable(looks, paths)
      for _, look in ipairs(looks) do
        local width, scheme = look:match "(%d+) (%a+)"
        browser:look_like(tonumber(width), scheme)
        for _, path in ipairs(paths) do
          visit(path)
          local how = path .. " at " .. look
          assert.is_true(browser:run "return document.documentElement.scrollWidth <= window.innerWidth", how)
          assert.is_true(browser:run(CONTRAST) >= 4.5, how)
        end
      end
      browser:look_like(1280, "light")
    end

    it("fit 375 and 1,280 pixels, and can be read in light and dark, with no election, a few and many", function()
      port = serve("one", app "crown.sleep(600)")
      is_readable(TWO, { "/", "/store" })
      port = serve("two", app [[
        for _, name in ipairs { "reports", ("long-name"):rep(14), "c" } do crown.elect { name = name, oracle = "memory:" } end
        crown.elect { name = "away", oracle = "redis://127.0.0.1:1" }]])
      is_readable(FOUR, { "/", "/store", "/history/reports", "/help" })
      port = serve("three", app(("for i = 1, %d do crown.elect { name = 'e' .. i, oracle = 'memory:' } end"):format(MANY)))
      is_readable(TWO, { "/" })
      assert.equal(1000, browser:run "return document.querySelectorAll('tbody tr').length")
    end)

    it("show first what is wrong", function()
      port = serve("one", app(TROUBLE))
      visit "/"
      eventually(function() return browser:run "return document.querySelectorAll('#alarms li').length == 2" end, 20)
      assert.equal("a-fine", names_in(browser:run "return document.querySelector('#elections tbody').innerHTML")[3])
    end)

    it("are used with the keyboard alone", function()
      port = serve("one", "run", "--oracle", "file:" .. tempdir(), "web", "sleep", "60")
      visit "/"
      eventually(function() return browser:run "return document.body.innerText.includes('live')" end, 20)
      local reached = {}
      for _ = 1, 5 do
        browser:press "Tab"
        reached[#reached + 1] = browser:run "return document.activeElement.textContent || document.activeElement.id"
      end
      assert.same({ "This host", "The store", "Help", "filter", "web" }, reached)
      assert.is_true(browser:run "return getComputedStyle(document.activeElement).outlineStyle !== 'none'")
      browser:press "Enter"
      eventually(function() return browser:run "return location.pathname" == "/history/web" end, 10)
    end)
  end)
end)
