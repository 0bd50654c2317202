-- Signatures for S3 against the examples that AWS publishes: "Signature Calculations for the Authorization Header" in the S3 API
-- reference.
local signature = require "crown.s3.signature"

local LOGIN = { id = "AKIAIOSFODNN7EXAMPLE", secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" }
local HOST, TIME = "examplebucket.s3.amazonaws.com", 1369353600 -- 2013-05-24T00:00:00Z

local function signed(request, login)
  request.headers.Host = HOST
  return signature.headers(request, login or LOGIN, "us-east-1", TIME)
end

describe("a signature for S3", function()
  for _, case in ipairs {
    { "of an object that is read", { method = "GET", path = "/test.txt", headers = { Range = "bytes=0-9" } },
      "host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },
    { "of an object that is written", { method = "PUT", path = "/test%24file.text", body = "Welcome to Amazon S3.", headers = {
      Date = "Fri, 24 May 2013 00:00:00 GMT", ["x-amz-storage-class"] = "REDUCED_REDUNDANCY" } },
      "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },
    { "of an option without a value", { method = "GET", path = "/", query = signature.query { lifecycle = "" }, headers = {} },
      "host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
    { "of a list", { method = "GET", path = "/", query = signature.query { prefix = "J", ["max-keys"] = "2" }, headers = {} },
      "host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
  } do
    it(case[1] .. " is that of AWS's example", function()
      assert.equal(("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=%s,Signature=%s")
        :format(case[3], case[4]), signed(case[2]).Authorization)
    end)
  end

  it("holds the condition of a write, and a session's token", function()
    local login = { id = LOGIN.id, secret = LOGIN.secret, token = "session" }
    local headers = signed({ method = "PUT", path = "/x", headers = { ["If-Match"] = '"e"' } }, login)
    assert.matches("SignedHeaders=host;if%-match;x%-amz%-content%-sha256;x%-amz%-date;x%-amz%-security%-token,", headers.Authorization)
    assert.equal("session", headers["x-amz-security-token"])
  end)

  it("sorts options by their names, and encodes what they say", function()
    assert.equal("continuation-token=a%2Bb%2F%3D&prefix=x%2Fy%20z", signature.query { prefix = "x/y z", ["continuation-token"] = "a+b/=" })
  end)
end)
