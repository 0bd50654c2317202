-- What crown.elect refuses, and how it says so.
local cas = require "crown.oracle.cas"
local crown = require "crown"
local Elections = require "support.elections"

local unique = Elections.unique

describe("crown.elect names what is wrong:", function()
  local mine = Elections.new()

  local function elect(options) return mine:elect(options) end

  after_each(function() mine:stop() end)

  local function refusal(options)
    local fine, problem = pcall(crown.elect, options)
    assert.is_false(fine)
    assert.is_true(problem.usage)
    return tostring(problem)
  end

  for _, case in ipairs {
    { "a missing name", {}, "name is required" },
    { "a name with a slash", { name = "a/b" }, "letters, digits" },
    { "a name that is a directory", { name = ".." }, "name '..' is not possible: .* the first one a letter, a digit or '_'" },
    { "a name of a hidden file", { name = ".x" }, "the first one a letter" },
    { "a name that looks like an option", { name = "--" }, "the first one a letter" },
    { "a name that is too long", { name = ("x"):rep(129) }, "at most 128" },
    { "an unknown option, with a suggestion", { name = "x", retri = 1 }, "unknown option 'retri' %(did you mean 'retry'%?%)" },
    { "an unknown option of the file oracle", { name = "x", oracle = { "file", lokc = "y" } },
      "oracle 'file': unknown option 'lokc' %(did you mean 'lock'%?%)" },
    { "a TTL of the file oracle, which has none", { name = "x", oracle = "file:/tmp/x?ttl=4" }, "oracle 'file': unknown option 'ttl'" },
    { "a lock outside of the directory", { name = "x", oracle = { "file", lock = "../y" } }, "lock '%.%./y' is not possible: letters" },
    { "an unknown option of the memory oracle", { name = "x", oracle = "memory:x?tll=4" }, "oracle 'memory': unknown option 'tll'" },
    { "a lock that a path of a URL cannot have", { name = "x", oracle = { "http_lease", url = "http://h/x", lock = ".." } },
      "oracle 'http_lease': lock '..' is no part of a URL's path: give another" },
    { "an option of the wrong type", { name = "x", retry = "soon" }, "retry must be a number" },
    { "an option out of range", { name = "x", retry = 0 }, "retry must be more than 0" },
    { "a NUL byte in an option", { name = "x", oracle = { "file", dir = "/tmp/a\0b" } }, "oracle 'file': dir has a NUL byte in it" },
    { "a NUL byte in a URL", { name = "x", oracle = "file:/tmp/a%00b" }, "oracle URL: there is a NUL byte" },
    { "a NUL byte in a command", { name = "x", child = { "sh", "-c", "true\0; false" } }, "command%[3%] has a NUL byte in it" },
    { "a NUL byte in a variable", { name = "x", child = { command = { "true" }, env = { A = "b\0c" } } }, "env.A has a NUL byte" },
    { "a directory without a name", { name = "x", oracle = { "file", dir = "" } }, "oracle 'file': dir must not be empty" },
    { "an oracle that is not there", { name = "x", oracle = "nosuch" }, "oracle 'nosuch' is neither" },
    { "an oracle that lacks a function", { name = "x", oracle = { init = print } }, "lacks the function claim" },
    { "an oracle with a name where a function may be", { name = "x", oracle = { init = print, claim = print, refresh = print,
      abdicate = "release" } }, "abdicate must be a function, not a string" },
    { "an oracle with half of the pair for orders", { name = "x", oracle = { init = print, claim = print, refresh = print,
      look_orders = print } }, "has look_orders and lacks swap_orders: operators' orders need both" },
    { "an oracle that cannot give back what an order forbids", { name = "x", oracle = { init = print, claim = print,
      refresh = print, list = print, look_orders = print, swap_orders = print } },
      "takes operators' orders by look_orders, and lacks the function abdicate, which they need" },
    { "an oracle that takes orders and does not say who leads", { name = "x", oracle = { init = print, claim = print,
      refresh = print, abdicate = print, look_orders = print, swap_orders = print } }, "lacks the function list, which they need" },
    { "a URL of an unknown scheme", { name = "x", oracle = "fil:x" }, "did you mean 'file'" },
    { "a field of the log whose name is none", { name = "x", child = { command = { "true" }, log_fields = { ["a b"] = "c" } } },
      "log_fields%.a b: a field has a name of letters" },
    { "a field of the log that is no text", { name = "x", child = { command = { "true" }, log_fields = { a = 1 } } },
      "log_fields%.a: a field has .* and a text" },
    { "a NUL byte in a field of the log", { name = "x", child = { command = { "true" }, log_fields = { a = "b\0c" } } },
      "log_fields%.a has a NUL byte" },
    { "too many fields of the log", { name = "x", child = { command = { "true" },
      log_fields = { a = "1", b = "2", c = "3", d = "4", e = "5" } } }, "log_fields has more than 4 fields" },
    { "an empty command", { name = "x", oracle = "memory:", child = {} }, "either a command" },
    { "a command with a number in it", { name = "x", oracle = "memory:", child = { "sleep", 5 } }, "command%[2%] must be a string" },
    { "a restart policy that is none", { name = "x", oracle = "memory:", child = { command = { "true" },
      restart = { policy = "always" } } }, "policy must be one of" },
    { "a user that is not there", { name = "x", oracle = "memory:", child = { command = { "true" }, user = "nobody-at-all" } },
      "no user 'nobody%-at%-all'" },
    { "a child of another user that would hold a session of the database", { name = "x", oracle = "postgres+advisory://h/d",
      child = { command = { "true" }, user = 65534 } }, "the open session of the database, which another user must not have" },
    { "a handler that is no function", { name = "x", oracle = "memory:", handlers = { won = 1 } }, "handlers.won must be a function" },
    { "a handler that is misspelt", { name = "x", oracle = "memory:", handlers = { wonn = print } }, "did you mean 'won'" },
    { "timing that could overlap, with the sum (R2)", { name = "x", oracle = { "memory", ttl = 2 }, stop_timeout = 2 },
      "timing could overlap: refresh .* must be less than the TTL of 2 s" },
  } do
    it(case[1], function()
      local text = refusal(case[2])
      assert.matches(case[3], text)
      assert.is_nil(text:find "\n")
    end)
  end

  local own = cas.oracle { word = "mine", read = print, write = print }
  for word, oracle in pairs { redis = {}, etcd = {}, nats_kv = {}, memory = {}, file = {}, postgres_lease = { url = "postgres://h/d" },
    postgres_advisory = { url = "postgres://h/d" }, http_lease = { url = "http://h/x" }, mine = { own } } do
    it("a lock that the verb evict could not name, in each store: " .. word, function()
      oracle[1] = oracle[1] or word
      for _, lock in ipairs { "", "a\nb", "a\194\155b", "a\255b" } do
        oracle.lock = lock
        assert.matches(("oracle '%s': lock "):format(word), refusal { name = "x", oracle = oracle })
      end
    end)
  end

  for _, word in ipairs { "redis", "etcd", "nats_kv", "mysql", "postgres_lease", "postgres_advisory", "http_lease", "kubernetes" } do
    it("a url that is no text: " .. word, function()
      for _, one in ipairs { 5, {}, true } do
        assert.matches(("oracle '%s': url must be a string, not a %s"):format(word, type(one)),
          refusal { name = "x", oracle = { word, url = one } })
      end
    end)
  end

  it("two elections of one name", function()
    local election = elect { oracle = "memory:two" }
    assert.matches("already an election of this name", refusal { name = election.name, oracle = "memory:two" })
  end)

  it("an oracle whose init refuses", function()
    local oracle = { init = function() return nil, "no store here" end, claim = print, refresh = print }
    assert.matches("no store here", refusal { name = unique(), oracle = oracle })
  end)
end)
