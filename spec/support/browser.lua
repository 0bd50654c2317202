--- A real browser, driven by WebDriver: Debian's chromium and chromedriver.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local port = require "support.port"
local tempdir = require "support.tempdir"

local Browser = {}
Browser.__index = Browser

--- Whether there is one.
function Browser.installed()
  local file = io.open "/usr/bin/chromedriver"
  if file then file:close() end
  return file ~= nil
end

function Browser:call(method, path, value)
  local reply = http.ask(self.port, ("%s /session%s"):format(method, path), value and crown.json.encode(value) or nil)
  local found = crown.json.decode(reply.body)
  assert(reply.status == 200, reply.body)
  return found.value
end

--- Starts a browser.
-- @tparam[opt] table arguments of chromium's
function Browser.start(arguments)
  local self = setmetatable({ port = port.free() }, Browser)
  local dir = tempdir()
  self.driver = Candidate.start { program = "/usr/bin/chromedriver", node = "browser", log = dir .. "/log",
    args = { "--port=" .. self.port }, env = { HOME = dir } }
  eventually(function()
    local connection = crown.tcp.connect("127.0.0.1", self.port)
    if connection then connection:close() end
    return connection
  end, 20)
  local args = { "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" .. dir .. "/profile" }
  for _, one in ipairs(arguments or {}) do args[#args + 1] = one end
  self.session = "/" .. self:call("POST", "", { capabilities = { alwaysMatch = {
    browserName = "chrome", ["goog:chromeOptions"] = { args = args, binary = "/usr/bin/chromium" } } } }).sessionId
  return self
end

--- Goes to a page.
function Browser:visit(url)
  self:call("POST", self.session .. "/url", { url = url })
end

--- Runs JavaScript. @return what it returns
function Browser:run(script)
  local value = self:call("POST", self.session .. "/execute/sync", { script = script, args = { 0 } })
  if value == crown.json.null then return nil end
  return value
end

--- Sends a command of the DevTools protocol.
-- @string cmd such as "Emulation.setEmulatedMedia"
-- @tparam table params
function Browser:devtools(cmd, params)
  return self:call("POST", self.session .. "/goog/cdp/execute", { cmd = cmd, params = params })
end

--- Shows pages in a width, and in light or dark.
-- @number width in pixels
-- @string scheme "light" or "dark"
-- @number[opt] height in pixels
function Browser:look_like(width, scheme, height)
  self:devtools("Emulation.setDeviceMetricsOverride", { width = width, height = height or 800, deviceScaleFactor = 1,
    mobile = width < 600 })
  self:devtools("Emulation.setEmulatedMedia", { features = { { name = "prefers-color-scheme", value = scheme } } })
end

--- Presses a key: "Tab", "Enter".
-- @string key
function Browser:press(key)
  local code = ({ Tab = 9, Enter = 13 })[key]
  local event = { key = key, code = key, windowsVirtualKeyCode = code, text = key == "Enter" and "\r" or nil }
  for _, kind in ipairs { "keyDown", "keyUp" } do
    event.type = kind
    self:devtools("Input.dispatchKeyEvent", event)
  end
end

function Browser:destroy()
  pcall(self.call, self, "DELETE", self.session)
  self.driver:signal "KILL"
  self.driver:wait(20)
end

return Browser
