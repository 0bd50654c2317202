--- A lease in this process's memory: for trying things out, for tests, and for measuring. It elects among the
-- elections of one runtime only. URL: `memory:SPACE`; options: `ttl` (30), `refresh` (a third of it).
-- @module crown.oracles.memory

return require("crown.oracle.driven").oracle(require "crown.stores.memory")
