-- Kubeconfigs as kubectl writes them, without a server.
local place = require "crown.kubernetes.place"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"
local yaml = require "crown.kubernetes.yaml"

describe("the YAML that kubectl writes", function()
  for text, found in pairs {
    ["a: 1\nb: \"two: \\\"x\\\"\"\nc: 'it''s'\n"] = { a = "1", b = 'two: "x"', c = "it's" },
    ["a:\n- b: 1\n  c: 2\n- b: 3\n"] = { a = { { b = "1", c = "2" }, { b = "3" } } },
    ["a:\n  - x\n  - y\nb: {}\nc: []\n"] = { a = { "x", "y" }, b = {}, c = {} },
    ["a: null\nb: true\nc: ~\nd: false # why\n"] = { b = true, d = false },
    ["---\n# a comment\na:\n  b:\n    c: https://host:6443\n"] = { a = { b = { c = "https://host:6443" } } },
    ["a: |\n  one\n    two\n\n  three\nb: 1\n"] = { a = "one\n  two\n\nthree", b = "1" },
    ["a:\r\n  b: 1\r\n"] = { a = { b = "1" } },
    [""] = {},
  } do
    it(("is read: %q"):format(text), function() assert.same(found, yaml.read(text)) end)
  end

  for text, words in pairs {
    ["a: &x 1\n"] = "line 1: YAML that kubectl does not write",
    ["a: [1, 2]\n"] = "line 1: YAML that kubectl does not write",
    ["a: 1\n\tb: 2\n"] = "line 2: a tab",
    ["a: 1\na: 2\n"] = "line 2: 'a' is there twice",
    ["a: 1\n   b: 2\n"] = "line 2: an indentation that fits nothing above it",
    ["a: \"x\n"] = "line 1: a string in double quotes that cannot be read",
    ["just words\n"] = "line 1: neither 'key: value' nor a list's '- '",
  } do
    it(("is refused where it is something else: %q"):format(text), function()
      local found, problem = yaml.read(text)
      assert.is_nil(found)
      assert.matches(words, problem, 1, true)
    end)
  end
end)

describe("a kubeconfig", function()
  local function read(user, cluster, context)
    local text = ("current-context: c\ncontexts:\n- name: c\n  context: {}\n"):gsub("{}\n", "\n    cluster: k\n    user: u\n")
      .. ("clusters:\n- name: k\n  cluster:\n%s\nusers:\n- name: u\n  user:\n%s\n"):format(cluster, user)
    return place.find { kubeconfig = write_file(tempdir() .. "/config", text), context = context }
  end

  it("names files beside itself, and data", function()
    local found = assert(read("    client-certificate: u.crt\n    client-key-data: a2V5", "    server: https://k:6443/\n"
      .. "    certificate-authority: /etc/ca.crt"))
    assert.equal("https://k:6443", found.base)
    assert.equal("/etc/ca.crt", found.ca)
    assert.matches("^/.*/u%.crt$", found.cert)
    assert.equal("key", found.key_data)
  end)

  for what, case in pairs {
    ["a plugin"] = { "    exec:\n      command: aws", "    server: https://k", "the plugin 'aws' (exec)" },
    ["a password"] = { "    username: x\n    password: y", "    server: https://k", "logs in by a password" },
    ["another user"] = { "    token: x\n    as: y", "    server: https://k", "acts as somebody else" },
    ["a proxy"] = { "    token: x", "    server: https://k\n    proxy-url: http://p", "through a proxy" },
    ["another name of the server"] = { "    token: x", "    server: https://k\n    tls-server-name: y", "tls-server-name" },
    ["no server"] = { "    token: x", "    insecure-skip-tls-verify: true", "names no server" },
    ["what is no base64"] = { "    client-key-data: '*'", "    server: https://k", "client-key-data is no base64" },
    ["a context that there is not"] = { "    token: x", "    server: https://k", "no context 'other'", "other" },
  } do
    it(("with %s is refused in words"):format(what), function()
      local found, problem = read(case[1], case[2], case[4])
      assert.is_nil(found)
      assert.matches("^kubeconfig /", problem)
      assert.matches(case[3], problem, 1, true)
      assert.is_nil(problem:find("password: y", 1, true))
    end)
  end

  it("that there is not is told", function()
    local found, problem = place.find { kubeconfig = "/nowhere/config" }
    assert.is_nil(found)
    assert.matches("/nowhere/config", problem, 1, true)
  end)
end)
