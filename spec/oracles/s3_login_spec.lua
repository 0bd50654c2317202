-- How a candidate logs in to S3, and what it is told of its rights and costs, on the stand-in.
local authority = require "support.authority"
local Player = require "support.oracle_candidate"
local run = require "support.run"
local s3 = require "crown.oracles.s3"
local Server = require "support.s3_server"
local write_file = require "support.write_file"

local VARIABLES = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
  "AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL_S3", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONFIG_FILE" }

local serial = 0

describe("a login to S3", function()
  local server

  local function set(values)
    for name, value in pairs(values) do Server.set(name, value) end
  end

  local function candidate(more)
    serial = serial + 1
    local options = server:options(more)
    options.url = "s3://spec/login-" .. serial -- a store of its own
    options.name, options.trust_empty, options.ttl = "x", true, 15
    return Player.new(s3, options)
  end

  local function claims(more) return candidate(more):claim()[1] end

  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    server:trick { issued = "AKIATOKEN", logins = { AKIATOKEN = { over = false } } }
    set { AWS_EC2_METADATA_DISABLED = "true", AWS_SHARED_CREDENTIALS_FILE = server.profiles }
  end)
  after_each(function()
    for _, name in ipairs(VARIABLES) do Server.set(name) end
  end)

  local function without_profile()
    Server.set("AWS_SHARED_CREDENTIALS_FILE", write_file(server.dir .. "/none", ""))
  end

  it("is that of the environment, with a session's token", function()
    set { AWS_ACCESS_KEY_ID = "AKIATOKEN", AWS_SECRET_ACCESS_KEY = "token-secret" }
    assert.matches("403 InvalidToken", candidate():claim()[2])
    set { AWS_SESSION_TOKEN = "session/token+" }
    assert.equal("granted", claims())
  end)

  it("is that of a profile, which the user names, or AWS_PROFILE, before the default", function()
    Server.set("AWS_SHARED_CREDENTIALS_FILE", write_file(server.dir .. "/two", "[default]\naws_access_key_id=AKIAWRONG\n"
      .. "aws_secret_access_key=x\n\n# another\n[team]\naws_access_key_id = AKIAALL\naws_secret_access_key = all/+secret\n"))
    assert.matches("403 InvalidAccessKeyId: .*; it does not know this access key", candidate():claim()[2])
    assert.equal("granted", claims { profile = "team" })
    set { AWS_PROFILE = "team" }
    assert.equal("granted", claims())
  end)

  it("is that of the container's service", function()
    without_profile()
    set { AWS_CONTAINER_CREDENTIALS_FULL_URI = server.base .. "/container", AWS_CONTAINER_AUTHORIZATION_TOKEN = "pass" }
    assert.equal("granted", claims())
  end)

  it("is that of the instance's service, and is asked for anew when it is not taken any more", function()
    without_profile()
    Server.set "AWS_EC2_METADATA_DISABLED"
    set { AWS_EC2_METADATA_SERVICE_ENDPOINT = server.base }
    local one = candidate()
    assert.equal("granted", one:claim()[1])
    server:trick { issued = "AKIANEXT", logins = { AKIATOKEN = { over = true } } }
    assert.equal("granted", one:answered("refresh")[1])
  end)

  it("by a file is read again when the server does not take it any more", function()
    local path = write_file(server.dir .. "/turned", "[default]\naws_access_key_id=AKIAALL\naws_secret_access_key=all/+secret\n")
    Server.set("AWS_SHARED_CREDENTIALS_FILE", path)
    local one = candidate()
    assert.equal("granted", one:claim()[1])
    write_file(path, "[default]\naws_access_key_id=AKIANEXT\naws_secret_access_key=next-secret\naws_session_token=next-token\n")
    server:trick { logins = { AKIAALL = { secret = "turned" } } }
    finally(function() server:trick { logins = { AKIAALL = { secret = "all/+secret" } } } end)
    assert.equal("granted", one:answered("refresh")[1])
  end)

  for _, case in ipairs {
    { "there is none", {}, "", "there is no login: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile" },
    { "it is half of one", { AWS_ACCESS_KEY_ID = "x" }, "", "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set" },
    { "a variable has a line's end in it", { AWS_ACCESS_KEY_ID = "x", AWS_SECRET_ACCESS_KEY = "y\n" }, "",
      "AWS_SECRET_ACCESS_KEY has the end of a line in it" },
    { "it is by SSO", {}, "[default]\nsso_session = x\n", "it logs in by SSO, which crown%-lua does not: give a profile with keys" },
    { "it runs a program", {}, "[default]\ncredential_process = x\n", "it runs a program for its login" },
    { "it is by a service account's token", { AWS_WEB_IDENTITY_TOKEN_FILE = "/x" }, "", "use EKS Pod Identity" },
  } do
    it("says in plain words that " .. case[1], function()
      Server.set("AWS_SHARED_CREDENTIALS_FILE", write_file(server.dir .. "/refused", case[3]))
      set(case[2])
      assert.matches(case[4], candidate():claim()[2])
    end)
  end

  for _, case in ipairs {
    { "a profile that is not there", { profile = "nobody" }, "there is no profile 'nobody'" },
    { "a login in the URL", { url = "s3://id:secret@spec/x" }, "a login is no part of the URL" },
    { "a prefix that a path would leave out", { url = "s3://spec/a/../b" }, "the prefix must not have a part that is empty" },
    { "no bucket", { url = "s3:///x" }, "is no bucket's name: s3://BUCKET/PREFIX" },
  } do
    it("refuses " .. case[1], function()
      local options = server:options(case[2])
      options.crown_name, options.node, options.token, options.send = "x", "n", "t", function() end
      local state, problem = s3.init(options)
      assert.is_nil(state)
      assert.matches(case[3], problem)
    end)
  end

  it("refuses a file of TLS where none is spoken, and a lock that makes no key", function()
    for words, more in pairs { ["ca has no effect without TLS"] = { ca = server.profiles },
      ["at most 1024 bytes"] = { lock = ("x"):rep(1020) },
      ["oracle 's3': region is empty"] = { region = "" } } do
      local options = server:options(more)
      options.crown_name, options.node, options.token, options.send = "x", "n", "t", function() end
      local fine, problem = pcall(s3.init, options)
      assert.is_false(fine)
      assert.matches(words, tostring(problem))
    end
  end)

  it("has a region of the bucket's own, which the server tells", function()
    assert.matches("AuthorizationHeaderMalformed.*; the bucket is in region eu%-central%-1: give region=eu%-central%-1",
      candidate({ region = "us-east-1" }):claim()[2])
  end)

  -- --- rights, health, cost

  local function check(id, secret, more)
    return run({ "check", "--store", "--oracle", server:url(more), "run", "x", "true" },
      { env = { AWS_ACCESS_KEY_ID = id, AWS_SECRET_ACCESS_KEY = secret } })
  end

  it("may do all that is needed, which changes nothing, and costs what check says", function()
    local before = server:object("GET", "x.json").status
    local result = check("AKIAALL", "all/+secret")
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.matches("lets this candidate take part", result.stdout)
    assert.matches("login%s+AKIAALL, from the environment", result.stdout)
    assert.matches("requests%s+about 1600 an hour of a leader %(%$0%.00432 at AWS' list price%), 7200 of a follower %(%$0%.00288%)",
      result.stdout)
    assert.equal(before, server:object("GET", "x.json").status)
    assert.is_nil(result.stdout:find "all/")
  end)

  for id, case in pairs { AKIAREAD = { "read", "s3:PutObject' on arn:aws:s3:::spec/elections/%*" },
    AKIANOLIST = { "nolist", "s3:ListBucket' on arn:aws:s3:::spec" },
    AKIANOGET = { "noget", "s3:GetObject' on arn:aws:s3:::spec/elections/%*" } } do
    it("is told which action of a policy is missing: " .. case[2]:match "s3:%w+", function()
      local result = check(id, case[1])
      assert.equal(2, result.code, result.stdout)
      assert.matches("no policy allows '" .. case[2], result.stdout)
      local _, count = result.stdout:gsub("no policy allows", "")
      assert.equal(1, count)
    end)
  end

  it("is warned of a bucket that keeps versions", function()
    server:trick { versioning = "Enabled" }
    finally(function() server:trick { versioning = "Suspended" } end)
    assert.matches("each renewal leaves one, some 19200 a day", check("AKIAALL", "all/+secret").stdout)
  end)
end)

describe("S3 over TLS", function()
  local server
  setup(function() server = Server.start(authority()) end)
  teardown(function() server:destroy() end)

  it("is spoken with an authority of the user's, and with no other", function()
    local options = server:options { trust_empty = true, name = "tls", ttl = 15 }
    assert.equal("granted", Player.new(s3, options):claim()[1])
    options.ca = nil
    assert.matches("^s3 at 127%.0%.0%.1:%d+: .*certificate", Player.new(s3, options):claim()[2])
  end)
end)
