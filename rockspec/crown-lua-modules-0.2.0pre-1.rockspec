rockspec_format = "3.0"
package = "crown-lua-modules"
version = "0.2.0pre-1"
source = { url = "crown-lua-0.2.0-dev.tar.gz" }
description = {
  summary = "Modules of crown-lua for authors of oracles: to lint against, and to try what is pure Lua on a plain LuaJIT",
  detailed = "crown.testing, the core of oracles over compare-and-swap (crown.register, crown.oracle.cas), text and checks.",
  license = "MIT",
}
dependencies = { "lua == 5.1", "lua-cjson" }
-- Not "builtin", which would install all that is in lua/.
build = {
  type = "none",
  install = {
    lua = {
      ["crown.check.epoch"] = "lua/crown/check/epoch.lua",
      ["crown.check.figure"] = "lua/crown/check/figure.lua",
      ["crown.check.others"] = "lua/crown/check/others.lua",
      ["crown.check.schema"] = "lua/crown/check/schema.lua",
      ["crown.check.seconds"] = "lua/crown/check/seconds.lua",
      ["crown.check.usage"] = "lua/crown/check/usage.lua",
      ["crown.core"] = "rockspec/plain/crown/core.lua",
      ["crown.election.contract"] = "lua/crown/election/contract.lua",
      ["crown.election.pace"] = "lua/crown/election/pace.lua",
      ["crown.oracle.candidate"] = "lua/crown/oracle/candidate.lua",
      ["crown.oracle.cas"] = "lua/crown/oracle/cas.lua",
      ["crown.oracle.claim_number"] = "lua/crown/oracle/claim_number.lua",
      ["crown.oracle.doubt"] = "lua/crown/oracle/doubt.lua",
      ["crown.oracle.eviction"] = "lua/crown/oracle/eviction.lua",
      ["crown.oracle.lease"] = "lua/crown/oracle/lease.lua",
      ["crown.oracle.named_files"] = "lua/crown/oracle/named_files.lua",
      ["crown.oracle.options"] = "lua/crown/oracle/options.lua",
      ["crown.oracle.trust"] = "lua/crown/oracle/trust.lua",
      ["crown.register.claims"] = "lua/crown/register/claims.lua",
      ["crown.register.cleaning"] = "lua/crown/register/cleaning.lua",
      ["crown.register.duties"] = "lua/crown/register/duties.lua",
      ["crown.register.ending"] = "lua/crown/register/ending.lua",
      ["crown.register.joined"] = "lua/crown/register/joined.lua",
      ["crown.register.oracle"] = "lua/crown/register/oracle.lua",
      ["crown.register.place"] = "lua/crown/register/place.lua",
      ["crown.register.record"] = "lua/crown/register/record.lua",
      ["crown.register.rule"] = "lua/crown/register/rule.lua",
      ["crown.register.seen"] = "lua/crown/register/seen.lua",
      ["crown.register.session"] = "lua/crown/register/session.lua",
      ["crown.register.several"] = "lua/crown/register/several.lua",
      ["crown.register.terms"] = "lua/crown/register/terms.lua",
      ["crown.register.tools"] = "lua/crown/register/tools.lua",
      ["crown.register.watch"] = "lua/crown/register/watch.lua",
      ["crown.testing"] = "lua/crown/testing/init.lua",
      ["crown.testing.clock"] = "lua/crown/testing/clock.lua",
      ["crown.testing.conformance"] = "lua/crown/testing/conformance.lua",
      ["crown.testing.eventually"] = "lua/crown/testing/eventually.lua",
      ["crown.testing.oracle"] = "lua/crown/testing/oracle.lua",
      ["crown.text.base64"] = "lua/crown/text/base64.lua",
      ["crown.text.hex"] = "lua/crown/text/hex.lua",
      ["crown.text.nonce"] = "lua/crown/text/nonce.lua",
      ["crown.text.is_utf8"] = "lua/crown/text/is_utf8.lua",
      ["crown.text.json"] = "lua/crown/text/json.lua",
      ["crown.text.printable"] = "lua/crown/text/printable.lua",
      ["crown.text.read_file"] = "lua/crown/text/read_file.lua",
      ["crown.text.url"] = "lua/crown/text/url.lua",
    },
  },
}
