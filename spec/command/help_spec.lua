-- Options are the same in help, on the manual pages and on the command's page, with what holds without them.
local cli = require "crown.command.cli"
local command = require "crown.command"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local url = require "crown.text.url"

-- An option as it begins in help and in a manual page: its name, then its value.
local function head(option) return "--" .. option.name .. (option.value and " " .. option.value or "") end

local function plain(text) return (text:gsub("\\f[IR]", ""):gsub("\\%-", "-"):gsub("\\e", "\\"):gsub("%s+", " ")) end

local function options_of(verb)
  local list = {}
  for _, options in ipairs { command.module(verb).options or {}, command.common_of(verb) } do
    for _, option in ipairs(options) do list[#list + 1] = option end
  end
  return list
end

describe("an option", function()
  for _, verb in ipairs(command.verbs) do
    it("of " .. verb .. " is in its help and on its manual page, in the same words", function()
      local help = plain(run({ "help", verb ~= "app" and verb or nil }).stdout)
      local page = plain(run({ "help", "--man", verb }).stdout)
      for _, option in ipairs(options_of(verb)) do
        for where, text in pairs { help = help, ["manual page"] = page } do
          assert.is_truthy(text:find(head(option) .. " " .. plain(cli.explain(option)), 1, true), where .. ": --" .. option.name)
        end
      end
    end)
  end

  it("that takes a value says what holds without it", function()
    local missing = {}
    for _, verb in ipairs(command.verbs) do
      for _, option in ipairs(options_of(verb)) do
        local told = cli.explain(option):find "%(default: [^()]+%)$"
        if option.value and not told then missing[#missing + 1] = verb .. " --" .. option.name end
      end
    end
    assert.same({}, missing)
  end)

  it("of a candidate is set by a variable that is named where it is explained", function()
    local page = read_file "docs/command.md"
    for _, option in ipairs(command.common) do
      if option.env then assert.is_truthy(page:find("`" .. option.env .. "`", 1, true), option.env) end
    end
  end)

  it("is on the command's page", function()
    local page, missing = read_file "docs/command.md", {}
    for _, verb in ipairs(command.verbs) do
      for _, option in ipairs(options_of(verb)) do
        if not page:find("--" .. option.name, 1, true) then missing[#missing + 1] = verb .. " --" .. option.name end
      end
    end
    assert.same({}, missing)
  end)
end)

describe("help oracles", function()
  it("has a line for each scheme of a URL", function()
    local text, missing = run({ "help", "oracles" }).stdout, {}
    for _, scheme in ipairs(url.schemes()) do
      local is_other_spelling = scheme:find "postgresql" ~= nil
      if not is_other_spelling and not text:find("%f[%w]" .. scheme:gsub("%+", "%%+") .. ":") then missing[#missing + 1] = scheme end
    end
    assert.is_true(#url.schemes() > 20)
    assert.same({}, missing)
  end)
end)

describe("a unit or an image", function()
  it("sets no variable of ours that is no option's", function()
    local known = { CROWN_DIRECTORY = true, CROWN_COMMAND = true, CROWN_NODE = true, CROWN_EPOCH = true, CROWN_PASSWORD = true }
    for _, option in ipairs(command.common) do known[option.env or ""] = true end
    for _, path in ipairs { "tools/systemd/crown-lua@.service", "tools/systemd/crown-run@.service", "Containerfile",
      "tools/kubernetes/reports.yaml", "tools/container/compose.yml" } do
      for name in read_file(path):gmatch "%f[%w_]CROWN_[%u_]+" do assert.is_true(known[name], path .. ": " .. name) end
    end
  end)
end)
