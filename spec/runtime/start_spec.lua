-- What a start takes, and what it leaves until it is needed.
local crown = require "crown"
local is_root = require "support.is_root"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local CLAIM = [[
  local candidate = assert(require("crown.oracles.file").init { crown_name = "e", dir = arg[1], node = "n", token = "t",
    send = function() end, emit = function() end })
  local granted, second = candidate:claim()
  print(granted, granted == nil and second or "")
]]

-- Stands where the kernel tells of all locks, and cannot be opened, not by root either.
local WITHOUT_PROC_LOCKS = [[
  python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$1/none"
  mount --bind "$1/none" /proc/locks && exec "$2" "$1/claim.lua" "$1/locks"]]

-- The holder is what a thread of the kernel is elsewhere: a child of process 2.
local HOLD = [[
  local path = arg[1] .. "/locks/e.lock"
  io.open(path, "w"):close()
  local lock = assert(require("crown.core.lockfile").open(path))
  assert(lock:try())
  io.open(arg[1] .. "/held", "w"):close()
  require("crown").sleep(60)
]]
local BELOW_PROCESS_2 = [[
  "$2" "$1/hold.lua" "$1" &
  until [ -e "$1/held" ]; do kill -0 $! || exit; sleep 0.01; done
  rm "$1/locks/e.lock"
  "$2" "$1/claim.lua" "$1/locks"]]

local as_root = is_root and it or pending

describe("a start", function()
  local dir
  before_each(function()
    dir = tempdir()
    assert(os.execute("mkdir -m 700 " .. dir .. "/locks") == 0)
    write_file(dir .. "/claim.lua", CLAIM)
  end)

  local function unshared(what, text)
    local words = { "unshare", unpack(what) }
    for _, word in ipairs { "bash", "-c", text, "bash", dir, program } do words[#words + 1] = word end
    return assert(crown.exec(words, { timeout = 60 }))
  end

  it("on the file oracle loads no library that only other stores need", function()
    write_file(dir .. "/app.lua", [[
      require("crown").elect { name = "e", oracle = "file:" .. arg[1], handlers = { won = function()
        for line in io.lines "/proc/self/maps" do print(line) end
        os.exit(0)
      end } }
    ]])
    local maps = run({ dir .. "/app.lua", dir .. "/locks" }).stdout
    assert.matches("libev", maps)
    for _, library in ipairs { "libssl", "libcrypto", "libpq", "libcurl", "libmicrohttpd" } do
      assert.is_nil(maps:find(library, 1, true), library)
    end
  end)

  it("says which library is missing where a store or a candidate's own node needs it", function()
    assert.equal(0, os.execute(("mkdir %s/broken && echo nonsense >%s/broken/libssl.so.3"):format(dir, dir)))
    write_file(dir .. "/app.lua", [[
      require("crown").elect { name = "e", node = arg[2], oracle = arg[1], handlers = { won = function() os.exit(0) end } }
    ]])
    local function start(...)
      return run({ dir .. "/app.lua", ... }, { env = { LD_LIBRARY_PATH = dir .. "/broken" }, timeout = 60 })
    end
    assert.equal(0, start("file:" .. dir .. "/locks").code)
    for _, words in ipairs { { "file:" .. dir .. "/locks", "ann" }, { "etcd://127.0.0.1:1" } } do
      local result = start(unpack(words))
      assert.equal(2, result.code)
      assert.matches("^crown%-lua: .-tls: .*libssl.so.3: .*: install libssl3\n", result.stderr)
    end
  end)

  as_root("leads by a new lock without the list of all locks, which the kernel takes long to give", function()
    local result = unshared({ "--mount" }, WITHOUT_PROC_LOCKS)
    assert.matches("^true", result.stdout, result.stderr)
  end)

  as_root("asks for the list of all locks where the record names another file", function()
    write_file(dir .. "/locks/e.json", '{"epoch":3,"leading":true,"node":"other","file":"00:00:1"}')
    local result = unshared({ "--mount" }, WITHOUT_PROC_LOCKS)
    assert.matches("^nil\t/proc/locks cannot be read", result.stdout, result.stderr)
  end)

  as_root("finds who holds a lock file that was taken away also among the children of process 2", function()
    write_file(dir .. "/hold.lua", HOLD)
    local result = unshared({ "--pid", "--fork", "--kill-child", "--mount-proc" }, BELOW_PROCESS_2)
    assert.matches("^false", result.stdout, result.stderr)
  end)
end)
