--- Plays a page of the documentation as its reader would: writes its files, types its commands, looks at what they print.
-- Comments of the page, which a reader does not see, say what the text around a block says:
--
--     <!-- with: postgres -->     on its own: a server stands for postgres://app:secret@db.example/app; so nats for
--                                 nats.example:4222, and etcd for etcd.example:2379
--     <!-- file: NAME -->         the next block is saved as NAME
--     <!-- terminal: NAME -->     its last command goes on in a terminal of its own
--     <!-- node: NAME -->         it does so on another host
--     <!-- on a terminal -->      it is typed where a terminal of 80 columns shows what it prints
--     <!-- retry -->              it is typed again until it prints what stands below
--     <!-- fails -->              it fails
--     <!-- busted -->             it runs busted
--     <!-- see: NAME or NAME -->  the next block of text is seen in a terminal
--     <!-- press: NAME -->        on its own: Ctrl-C there
--     <!-- kill: NAME -->         on its own: what the text says of a kill -KILL of its runtime
--     <!-- not run: WHY -->       the next block is only read
--
-- A block of text says what the one before it prints: each of its lines, in this order; … stands for anything.
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local port = require "support.port"
local Postgres = require "support.postgres"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- What a page calls a server, and what stands for it: whatever the scheme before it is.
local SERVERS = {
  postgres = { Postgres, "//app:secret@db.example/app", function(server) return (server.url:gsub("^%w+:", "")) end },
  nats = { Nats, "nats.example:4222", function(server) return "127.0.0.1:" .. server.port end },
  etcd = { Etcd, "etcd.example:2379", function(server) return server.endpoint end },
}
local RUN = { sh = true, lua = true, sql = true, text = true }

-- A terminal ends its lines by \r\n.
local ON_A_TERMINAL = "script -qec 'stty cols 80; %s' /dev/null </dev/null | tr -d '\\r'\n"

local Page = {}
Page.__index = Page

-- The page as a list of `{ say = "comment", argument }` and `{ language =, text =, line = }`.
local function parse(path)
  local items, block, number = {}, nil, 0
  for line in assert(read_file(path), path):gmatch "([^\n]*)\n" do
    number = number + 1
    local fence = line:match "^```(.*)$"
    if block and fence then
      items[#items + 1], block = block, nil
    elseif fence then
      block = { language = fence, text = "", line = number }
    elseif block then
      block.text = block.text .. line .. "\n"
    else
      local comment = line:match "^<!%-%- (.-) %-%->$"
      if comment then
        local word, argument = comment:match "^([%a ]+): (.*)$"
        items[#items + 1] = { say = word or comment, argument = argument }
      end
    end
  end
  return items
end

function Page:fill(text)
  text = text:gsub(":9090", ":" .. self.port):gsub("%f[%d]7799%f[%D]", tostring(self.store_port))
  for name, server in pairs(self.servers) do
    local address = SERVERS[name][3](server):gsub("%%", "%%%%")
    text = text:gsub(SERVERS[name][2]:gsub("%p", "%%%0"), address)
  end
  return text
end

-- What a shell of the reader knows besides the words of a block.
function Page:environment()
  return { PATH = self.bin .. ":" .. os.getenv "PATH", CROWN_DIRECTORY = self.dir .. "/state", HOME = self.dir }
end

-- Whether the lines stand in a text in this order.
local function shows(text, expected)
  local from = 1
  for line in expected:gmatch "[^\n]+" do
    local pattern = line:gsub("%p", "%%%0"):gsub("…", ".-")
    local first, last = text:find(pattern, from)
    if not first then return false, line end
    from = last + 1
  end
  return true
end

local function must_show(text, expected)
  local fine, line = shows(text, expected)
  if not fine then error(("'%s' is not to be seen in:\n%s"):format(line, text), 0) end
end

-- What all the blocks before have exported holds on.
function Page:script(text)
  local exports = table.concat(self.exports, "\n")
  for line in text:gmatch "[^\n]+" do
    if line:match "^export " then self.exports[#self.exports + 1] = line end
  end
  return ("cd '%s'\n%s\nset -e\n%s"):format(self.dir, exports, text)
end

function Page:type_in(text, fails)
  local result = assert(crown.exec({ "bash", "-c", self:script(text) }, { timeout = 60, env = self:environment() }))
  local output = result.stdout .. result.stderr
  if (result.code == 0) == (fails == true) then error(("exit code %s: %s"):format(result.code, output), 0) end
  return output
end

function Page:sql(text, fails)
  return self:type_in(("psql -v ON_ERROR_STOP=1 '%s' <<'END'\n%sEND\n"):format(self.servers.postgres.url, text), fails)
end

function Page:open_terminal(name, text, node)
  local last = text:match "([^\n]+)\n$"
  local script = self:script(text:sub(1, -#last - 2) .. "exec env " .. last)
  local env = self:environment()
  self.terminals[name] = Candidate.start { program = "/bin/bash", args = { "-c", script }, node = node,
    log = ("%s/terminal-%s-%d"):format(self.dir, name, self.opened), env = env }
  self.opened = self.opened + 1
  self.seen = function() return self.terminals[name]:output() end
end

local DO = {}

function DO.with(self, what)
  self.servers[what] = assert(SERVERS[what], what)[1].start()
  if what == "etcd" then self.servers[what]:trusted() end -- the reader's has been there for long
end

function DO.press(self, name)
  local terminal = self.terminals[name]
  terminal:signal "INT"
  terminal:wait(20)
end

function DO.kill(self, name)
  self.terminals[name]:hurt("KILL", "runtime")
end

function DO.see(self, names)
  self.seen = function()
    local text = ""
    for name in names:gmatch "[^ ]+" do
      if name ~= "or" then text = text .. self.terminals[name]:output() end
    end
    return text
  end
end

-- A block of Lua that declares an election is an app; of another, only that it can be read is known.
function Page:read_lua(text)
  write_file(self.dir .. "/block.lua", self:fill(text))
  self:type_in(text:find("crown.elect", 1, true) and "crown-lua check block.lua" or "luajit -b block.lua /dev/null")
end

function Page:play_block(block, notes)
  local text = self:fill(block.text)
  if notes.file then
    write_file(self.dir .. "/" .. notes.file, text)
  elseif block.language == "text" then
    if notes["not run"] then return end
    local seen = assert(self.seen, "nothing has been typed yet")
    eventually(function() must_show(seen(), text) return true end, 20)
  elseif block.language == "lua" then
    self:read_lua(block.text)
  elseif block.language == "sql" then
    local output = self:sql(text, notes.fails)
    self.seen = function() return output end
  elseif notes.terminal then
    self:open_terminal(notes.terminal, text, notes.node)
  else
    if notes["on a terminal"] then text = ON_A_TERMINAL:format((text:gsub("'", "'\\''"))) end
    if notes.busted then text = text:gsub("%-%-lua=crown%-lua", "--lua=" .. program) end
    local output = not notes.retry and self:type_in(text, notes.fails)
    self.seen = function() return output or self:type_in(text) end
  end
end

--- Plays a page; raises the line of the block that does not do what the page says.
-- @string path of the page
function Page.play(path)
  local dir = tempdir()
  local self = setmetatable({ dir = dir, bin = dir .. "/bin", exports = {}, terminals = {}, servers = {},
    opened = 1, port = port.free(), store_port = port.free() }, Page)
  assert(os.execute(("mkdir -p '%s' && ln -s '%s' '%s/crown-lua'"):format(self.bin, program, self.bin)) == 0)
  local notes = {}
  local fine, problem = xpcall(function()
    for _, item in ipairs(parse(path)) do
      if item.say and DO[item.say] then
        DO[item.say](self, item.argument)
      elseif item.say then
        notes[item.say] = item.argument or true
      elseif (RUN[item.language] or notes.file) and (not notes["not run"] or item.language == "text") then
        local played, why = pcall(self.play_block, self, item, notes)
        if not played then error(("%s:%d: %s"):format(path, item.line, tostring(why)), 0) end
      end
      if not item.say then notes = {} end
    end
  end, function(why) return type(why) == "string" and why or tostring(why) end)
  for _, terminal in pairs(self.terminals) do terminal:destroy() end
  for _, server in pairs(self.servers) do server:destroy() end
  if not fine then error(problem, 0) end
end

--- The pages of a folder of the documentation.
-- @treturn table an array of paths
function Page.all()
  local pages = {}
  local pipe = assert(io.popen "find docs -name '*.md' | sort")
  for path in pipe:lines() do pages[#pages + 1] = path end
  pipe:close()
  return pages
end

return Page
