--- A lease in the key-value store of Consul. URL: `consul://HOST/PREFIX?recipe=register`. See docs/oracle-consul.md.
-- @module crown.oracles.consul

return require("crown.oracle.driven").oracle(require "crown.stores.consul")
