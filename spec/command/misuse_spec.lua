-- What no store could mend: said at once, in one line that names what to mend, and with exit code 2. Nobody is asked for that.
local crown = require "crown"
local Etcd = require "support.etcd"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local NOWHERE = "127.0.0.1:1"

describe("a mistake in what a store is told by", function()
  local dir, place
  local certificate = [[openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=%s -keyout %s/%s.key -out %s/%s.pem 2>/dev/null]]

  setup(function()
    dir = tempdir()
    for _, name in ipairs { "one", "two" } do
      assert(os.execute(certificate:format(name, dir, name, dir, name)) == 0)
    end
    write_file(dir .. "/text", "nothing that anybody could read\n")
    write_file(dir .. "/empty", "")
    assert(os.execute(("mkdir %s/directory && mkfifo %s/pipe"):format(dir, dir)) == 0)
    place = function(name) return dir .. "/" .. name end
  end)

  -- @return its standard error, without what stands before the words about the store
  local function refused(...)
    local result = run({ ... }, { timeout = 30 })
    assert.same({ 2, "" }, { result.code, result.stdout }, result.stderr)
    assert.equal(1, select(2, result.stderr:gsub("\n", "")), result.stderr)
    return result.stderr
  end

  local function refuses(url, words)
    local said = refused("run", "--once", "--oracle", url, "x", "true")
    assert.matches(words, said)
    local app = write_file(dir .. "/app.lua", ('require("crown").elect { name = "x", oracle = %q, child = { "true" } }'):format(url))
    assert.matches(words, refused(app))
    assert.matches(words, refused("check", app))
  end

  local PORT = "names no valid .*port"
  for _, word in ipairs { "postgres", "postgres+advisory", "oban+postgres", "redis", "rediss", "redis+sentinel", "redis+cluster",
    "etcd", "etcds", "nats", "tls", "http", "https" } do
    local scheme = word .. "://"
    local path = word:find "postgres" and "/db" or word:find "sentinel" and "/m" or word:find "http" and "/x" or ""
    it(("is a port that is none, %s"):format(scheme), function()
      for _, port in ipairs { "abc", "0", "65536", "-1", "1:2" } do
        local said = refused("run", "--once", "--oracle", scheme .. "127.0.0.1:" .. port .. path, "x", "true")
        assert.matches(PORT, said)
      end
      refuses(scheme .. "127.0.0.1:abc" .. path, PORT)
    end)

    it(("is a # behind the place, %s"):format(scheme), function()
      refuses(scheme .. "127.0.0.1:1" .. (path == "" and "/p" or path) .. "#prod", "#")
    end)

    if not scheme:find "^http" then
      it(("is a list with an empty place, or another URL in it, %s"):format(scheme), function()
        for _, list in ipairs { "127.0.0.1:1,", ",127.0.0.1:1", "127.0.0.1:1,,127.0.0.1:2", "127.0.0.1:1,http://127.0.0.1:1" } do
          refused("run", "--once", "--oracle", scheme .. list .. path, "x", "true")
        end
      end)
    end

    it(("is a host that no name server has, %s"):format(scheme), function()
      for _, host in ipairs { "ho st", "ho%20st", "a_b!c", "[::1" } do
        refused("run", "--once", "--oracle", scheme .. host .. path, "x", "true")
      end
      refuses(scheme .. "ho st" .. path, "names no valid host")
    end)
  end

  it("is a URL of HTTP that names no server", function()
    refuses("http:", "a URL of a lease server is written https://host/path")
    refuses("http:///locks", "names no valid host")
  end)

  for _, word in ipairs { "rediss", "rediss+cluster", "etcds", "tls", "https" } do
    local base = ("%s://%s%s?"):format(word, NOWHERE, word == "https" and "/x" or "")
    it(("is a file of TLS, %s"):format(word), function()
      for name, words in pairs { ["/no/file"] = "ca: open /no/file: No such file", [place "directory"] = "ca: .*directory.* no plain file",
        [place "pipe"] = "ca: .*pipe.* no plain file", [place "text"] = "ca: .*text: ", [place "empty"] = "ca: .*empty: " } do
        assert.matches(words, refused("run", "--once", "--oracle", base .. "ca=" .. name, "x", "true"))
      end
      refuses(base .. "ca=/no/file", "ca: open /no/file: No such file or directory")
      refuses(base .. "cert=/no/file", "cert: open /no/file: No such file or directory")
      refuses(base .. "cert=" .. place "one.pem" .. "&key=/no/file", "key: open /no/file: No such file or directory")
      refuses(base .. "cert=" .. place "one.pem" .. "&key=" .. place "text", "key: .*text: ")
      refuses(base .. "cert=" .. place "one.pem" .. "&key=" .. place "two.key", "key: .*two.key: key values mismatch")
      refuses(base .. "key=" .. place "one.key", "key has no effect without cert")
      local fine = run { "run", "--once", "--oracle", base .. ("ca=%s&cert=%s&key=%s"):format(place "two.pem", place "one.pem",
        place "one.key"), "x", "true" }
      assert.equal(3, fine.code, fine.stderr)
    end)
  end

  it("is a file that Postgres is to be known by", function()
    local base = "postgres://" .. NOWHERE .. "/x?sslmode=verify-full&"
    for _, option in ipairs { "sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile" } do
      refuses(base .. option .. "=/no/file", option .. ": open /no/file: No such file or directory")
      refuses(base .. option .. "=" .. place "pipe", option .. ": .*pipe.* no plain file")
    end
    assert.equal(3, run({ "run", "--once", "--oracle", base .. "sslrootcert=system", "x", "true" }).code)
  end)

  it("is an option of libpq that cannot be", function()
    local base = "postgres://" .. NOWHERE .. "/x?"
    refuses(base .. "sslmode=maybe", 'invalid sslmode value: "maybe"')
    refuses(base .. "target_session_attrs=best", 'invalid target_session_attrs value: "best"')
    refuses(base .. "gssencmode=maybe", 'invalid gssencmode value: "maybe"')
    refuses(base .. "connect_timeout=soon", 'invalid integer value "soon" for connection option "connect_timeout"')
    refuses(base .. "keepalives_idle=never", 'invalid integer value "never" for connection option "keepalives_idle"')
  end)

  it("is a file that NATS is to know a user by", function()
    local base = "nats://" .. NOWHERE .. "?"
    refuses(base .. "nkey=/no/file", "nkey: .*/no/file: No such file or directory")
    refuses(base .. "nkey=" .. place "text", "nkey: .*/text: this is no nkey seed")
    refuses(base .. "credentials=/no/file", "credentials: .*/no/file: No such file or directory")
    refuses(base .. "credentials=" .. place "text", "holds no JWT and seed")
    refuses(base .. "credentials=" .. place "pipe", "no plain file")
  end)

  it("is a token beside a NATS URL, or a bucket whose name no server takes", function()
    refuses("nats://" .. NOWHERE .. "/B?token=secret", "token is no option: a token stands in the URL, before the host")
    refuses("nats://" .. NOWHERE .. "/" .. ("b"):rep(253), "the URL's bucket is too long: 253 bytes, and a server takes 252")
  end)

  it("is a switch that is neither on nor off", function()
    for _, scheme in ipairs { "rediss", "tls" } do
      refuses(("%s://%s?insecure=maybe"):format(scheme, NOWHERE), "insecure must be true or false")
    end
  end)

  it("is said by whoever asks the store, too", function()
    for _, words in ipairs { { "info" }, { "evict", "--force", "x" }, { "check", "--store" } } do
      local all = { words[1], "--oracle", ("rediss://%s?ca=/no/file"):format(NOWHERE) }
      for i = 2, #words do all[#all + 1] = words[i] end
      if words[1] == "check" then
        for _, word in ipairs { "run", "x", "true" } do all[#all + 1] = word end
      end
      assert.matches("ca: open /no/file: No such file", refused(unpack(all)))
    end
  end)

  it("does not end a candidate whose runtime was killed meanwhile: the file may be there again in a moment", function()
    local Candidate, eventually = require "support.candidate", crown and require("crown.testing").eventually
    local own = place "own.pem"
    assert(os.execute(("cp %s %s"):format(place "one.pem", own)) == 0)
    local one = Candidate.start { args = { "run", "--oracle", ("rediss://%s?ca=%s"):format(NOWHERE, own), "x", "true" }, node = "one",
      log = tempdir() .. "/log" }
    finally(function() one:destroy() end)
    local function refused_tries() return select(2, one:output():gsub("Connection refused", "")) end
    eventually(function() return refused_tries() > 0 end)
    os.remove(own)
    one:hurt("KILL", "runtime")
    eventually(function() return one:output():find "runtime.restarted" end)
    eventually(function() return one:output():find "own.pem: No such file" end)
    local before = refused_tries()
    assert(os.execute(("cp %s %s"):format(place "one.pem", own)) == 0)
    eventually(function() return refused_tries() > before end)
  end)

  describe("is a login where there is none", function()
    it("in Redis: --once ends with 2, and who campaigns on says what to mend", function()
      local server = Redis.start()
      finally(function() server:destroy() end)
      local url = server.url:gsub("^redis://", "redis://:secret@")
      local result = run { "run", "--once", "--quiet", "--oracle", url, "x", "true" }
      assert.equal(2, result.code, result.stderr)
      assert.matches("the server has no password: leave it out of the URL", result.stderr)
      assert.is_nil(result.stderr:find "secret")
      assert.equal(2, run({ "info", "--oracle", url }).code)
      local checked = run { "check", "--store", "--oracle", url, "run", "x", "true" }
      assert.equal(2, checked.code)
      assert.matches("PROBLEM +redis at %S+: the server has no password: leave it out of the URL\n", checked.stdout)
    end)

    it("in etcd, too", function()
      local server = Etcd.start()
      finally(function() server:destroy() end)
      local url = server.url:gsub("^etcd://", "etcd://ann:secret@")
      local result = run { "run", "--once", "--quiet", "--oracle", url, "x", "true" }
      assert.equal(2, result.code, result.stderr)
      assert.matches("this etcd has no users: leave user and password out of the URL", result.stderr)
      assert.equal(2, run({ "info", "--oracle", url }).code)
      local checked = run { "check", "--store", "--oracle", url, "run", "x", "true" }
      assert.equal(2, checked.code)
      assert.matches("PROBLEM +etcd at %S+: this etcd has no users", checked.stdout)
    end)
  end)

  it("is a number that is none", function()
    for _, url in ipairs { "http://h/x?ttl=nan", "redis://h?ttl=nan", "etcd://h?ttl=nan", "nats://h/b?ttl=nan" } do
      refuses(url, "ttl is not a number")
    end
  end)

  -- A name of what the runtime itself gives an oracle is no option of the user's.
  for _, where in ipairs { "http://h/x", "redis://h", "redis+majority://a,b,c", "etcd://h", "postgres://h/d", "postgres+advisory://h/d",
    "oban+postgres://h/d", "registry+postgres://h/d", "mysql://h/d", "nats://h/b", "k8s://d", "memory:x", "file:/tmp/x" } do
    it("is an option that the runtime gives, " .. where, function()
      for _, name in ipairs { "given", "crown_name", "election", "checking" } do
        refuses(("%s?%s=a"):format(where, name), ("unknown option '%s'"):format(name))
      end
      refuses(where .. "?token=a", where:find "^nats" and "token is no option" or "unknown option 'token'")
      local app = write_file(dir .. "/app.lua", ([[
        require("crown").elect { name = "x", oracle = { %q, leading = true }, child = { "true" } }]]):format(where))
      assert.matches("unknown option 'leading'", refused("check", app))
    end)
  end

  it("is a login or a header of several lines, whose text is not shown", function()
    for options, words in pairs {
      ['bearer = "sesame\\n"'] = "bearer must be one line",
      ['bearer = ""'] = "bearer must not be empty",
      ['user = "a\\r", password = "sesame"'] = "user must be one line",
      ['user = "a", password = "sesame\\n"'] = "password must be one line",
      ['headers = { "X-Api-Key: sesame" }'] = "headers must have names as keys",
      ['headers = { ["X-Api-Key"] = "sesame\\n" }'] = "headers 'X%-Api%-Key' must be one line",
      ['headers = { ["X Key"] = "sesame" }'] = "headers must have names as keys",
    } do
      local app = write_file(dir .. "/app.lua",
        ('require("crown").elect { name = "x", oracle = { "http_lease", url = "http://h/x", %s }, child = { "true" } }'):format(options))
      for _, said in ipairs { refused(app), refused("check", app) } do
        assert.matches(words, said)
        assert.is_nil(said:find "sesame")
      end
    end
  end)
end)
