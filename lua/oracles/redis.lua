--- A lease in Redis: records that a script reads and writes, atomic on the server. On one server, on a primary with replicas, in
-- a cluster, or on most of several independent servers. URL: `redis://host:6379/0?ttl=15`. See docs/oracle-redis.md.
-- @module crown.oracles.redis

return require("crown.oracle.driven").oracle(require "crown.stores.redis")
