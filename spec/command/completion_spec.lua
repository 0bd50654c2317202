-- What the shells complete, as the shells themselves say it.
local command = require "crown.command"
local crown = require "crown"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"
local url = require "crown.text.url"
local write_file = require "support.write_file"

-- Prints what the keys after which TAB is pressed may become. Keys are the words of the command line, the last one half written.
local SHELLS = {
  bash = [=[
    source completion
    line="$1"; read -r -a COMP_WORDS <<< "${line//=/ = }"; [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _crown_lua 2> /dev/null
    printf '%s\n' "${COMPREPLY[@]}"]=],
  fish = [[
    source completion
    complete -C "$argv[1]" | string replace -r '\t.*' '']],
  -- The completion system runs on a terminal only; what it adds is written to a file.
  zsh = [=[
    zmodload zsh/zpty
    cat > init <<'END'
      PROMPT=
      fpath=($PWD $fpath)
      autoload -Uz compinit; compinit -u -d dump
      bindkey '^I' complete-word
      compadd() {
        local -a found
        if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
        builtin compadd -A found "$@"
        print -rl -- $found >> found
        builtin compadd "$@"
      }
      finish() { exit }
      comppostfuncs=(finish)
END
    : > found
    zpty z zsh -f -i
    zpty -w z 'source init'
    zpty -w -n z "$1"$'\t'
    while zpty -r z line; do :; done
    cat found]=],
}

describe("crown-lua completion", function()
  local place

  setup(function()
    place = tempdir()
    local directory = tempdir()
    write_file(directory .. "/history", '{"event":"leadership.changed","time":1,"name":"nightly","node":"n","leader":"n","epoch":1}\n'
      .. '{"event":"leadership.changed","time":1,"name":"nosuch","node":"n","leader":"n","epoch":1}\n')
    write_file(place .. "/app.lua", "")
    assert(os.execute(("ln -s $(realpath %s) %s/crown-lua"):format(program, place)) == 0)
    for shell, text in pairs(SHELLS) do
      local script = run({ "completion", shell }).stdout
      write_file(("%s/%s"):format(place, shell == "zsh" and "_crown-lua" or "completion." .. shell), script)
      write_file(("%s/run.%s"):format(place, shell), ("export CROWN_DIRECTORY=%s PATH=%s:$PATH; cd %s\n%s\n"):format(directory, place,
        place, (text:gsub("source completion", "source completion." .. shell))))
    end
  end)

  -- What the line may become, as keys.
  local function completed(shell, line)
    local result = assert(crown.exec({ shell, shell == "fish" and "--no-config" or shell == "zsh" and "-f" or "--norc",
      ("%s/run.%s"):format(place, shell), line }, { timeout = 60 }))
    local found = {}
    for word in result.stdout:gmatch "[^\n]+" do found[word:gsub("=$", ""):gsub("%s+$", "")] = true end
    return found
  end

  for shell in pairs(SHELLS) do
    describe("for " .. shell, function()
      local function offers(line, words)
        local found = completed(shell, line)
        for _, word in ipairs(words) do
          assert.is_true(found[word], ("%s: '%s' does not offer %s"):format(shell, line, word))
        end
        return found
      end

      it("offers the commands", function()
        local names = {}
        for _, name in ipairs(command.verbs) do names[#names + 1] = name ~= "app" and name or nil end
        offers("crown-lua ", names)
        offers("crown-lua help ", names)
      end)

      for _, name in ipairs(command.verbs) do
        if name ~= "app" then
          it("offers every option of " .. name .. ", and no other", function()
            local options, taken = {}, {}
            for _, list in ipairs { command.module(name).options or {}, command.common_of(name) } do
              for _, option in ipairs(list) do
                options[#options + 1], taken["--" .. option.name] = "--" .. option.name, true
              end
            end
            for word in pairs(offers(("crown-lua %s --"):format(name), options)) do
              assert.is_true(taken[word] or not word:find "^%-%-", word .. " is offered too")
            end
          end)
        end
      end

      it("offers the values that an option has", function()
        offers("crown-lua run --restart ", { "permanent", "transient", "temporary" })
        offers("crown-lua run --restart=", { shell == "fish" and "--restart=permanent" or "permanent" })
        offers("crown-lua info --sort ", { "leader", "expires" })
        offers("crown-lua --log-format ", { "text", "logfmt", "json" })
      end)

      it("offers the schemes of the oracles", function()
        local schemes = {}
        for i, scheme in ipairs(url.schemes()) do schemes[i] = scheme .. ":" end
        offers("crown-lua info --oracle ", schemes)
      end)

      it("offers the names of elections where one is expected", function()
        for _, verb in ipairs { "run", "info", "evict", "status", "history", "abdicate" } do
          offers(("crown-lua %s n"):format(verb), { "nightly", "nosuch" })
        end
      end)

      it("offers the words that are one of a few", function()
        offers("crown-lua log-level ", { "debug", "info", "warn", "error" })
        offers("crown-lua completion ", { "bash", "zsh", "fish" })
        offers("crown-lua check r", { "run" })
        offers("crown-lua check a", { "app.lua" })
        offers("crown-lua a", { "app.lua", "abdicate" })
      end)
    end)
  end

  it("knows three shells, and prints the names that they complete", function()
    assert.equal(2, run({ "completion", "csh" }).code)
    local directory = tempdir()
    write_file(directory .. "/history", '{"event":"leadership.changed","time":1,"name":"b","node":"n","leader":"n","epoch":1}\n'
      .. '{"event":"leadership.changed","time":1,"name":"a","node":"n","leader":"n","epoch":1}\n')
    assert.equal("a\nb\n", run({ "completion", "names" }, { env = { CROWN_DIRECTORY = directory } }).stdout)
  end)
end)
