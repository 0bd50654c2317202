--- A lease in Postgres: rows of one table, which is also that of the Elixir library Crown, so that its nodes and ours can contend
-- for one election. URL: `postgres://user@host/database?ttl=15`. See docs/oracle-postgres.md.
-- @module crown.oracles.postgres_lease

return require("crown.oracle.driven").oracle(require "crown.stores.postgres")
