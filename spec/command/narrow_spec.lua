-- Tables on a narrow terminal keep what matters, and no line is wider than the terminal.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Terminal = require "support.terminal"
local write_file = require "support.write_file"

local LONG_NAME, LONG_NODE = "nightly-backup-of-everything", "ann.database.example.org"

local function characters(text)
  return select(2, text:gsub("[^\128-\191]", ""))
end

describe("on a terminal of", function()
  local place, started

  before_each(function() place, started = tempdir(), {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function shown(columns, ...)
    local one = Terminal.start { args = { ... }, columns = columns, env = { CROWN_DIRECTORY = place, LC_ALL = "C.UTF-8" } }
    started[#started + 1] = one
    one:wait(20)
    local text = one:shown():gsub("\r", "")
    for line in text:gmatch "[^\n]+" do
      if line:find "^[│┌├└]" then assert.is_true(characters(line) <= columns, text) end
    end
    return text
  end

  local function keep_history()
    write_file(place .. "/history", crown.json.encode { event = "leadership.changed", time = 1e9, name = LONG_NAME, node = LONG_NODE,
      leader = LONG_NODE, epoch = 4711 } .. "\n" .. crown.json.encode { event = "leadership.lost", time = 1e9 + 3000, name = LONG_NAME,
      node = LONG_NODE, leader = LONG_NODE, epoch = 4711, reason = "handler_failed" } .. "\n")
  end

  for columns, date in pairs { [80] = "2001%-09%-09 %d%d:46:40", [60] = "09%-09 %d%d:46 " } do
    describe(columns .. " columns", function()
      it("history shows when each term began and why it ended", function()
        keep_history()
        for _, words in ipairs { { "history" }, { "history", LONG_NAME } } do
          local text = shown(columns, unpack(words))
          assert.matches("│ " .. date, text)
          assert.matches("│ handler_failed +│", text)
          assert.matches("│ ann%.data", text)
        end
        assert.matches("│ nightly%-b", shown(columns, "history"))
      end)

      it("status --stores shows each server, its state, and the whole of the last error", function()
        local server = "127.0.0.1:" .. port.free()
        started[1] = Candidate.start { args = { "run", "--oracle", "redis://" .. server, LONG_NAME, "true" }, node = LONG_NODE,
          log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place } }
        for words, text in pairs { [{ "status", "--stores" }] = "Connection refused", [{ "status" }] = "? no answer" } do
          eventually(function() return run(words, { env = { CROWN_DIRECTORY = place } }).stdout:find(text, 1, true) end, 20)
        end
        local text = shown(columns, "status", "--stores")
        assert.is_truthy(text:find("│ " .. server, 1, true), text)
        assert.is_truthy(text:find("redis " .. server .. ": Connection refused; is the server running", 1, true), text)
        text = shown(columns, "status")
        assert.is_truthy(text:find("│ ? no answer │", 1, true), text)
      end)
    end)
  end
end)
