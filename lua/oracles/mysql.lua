--- A lease in MySQL or MariaDB: rows of a table of InnoDB. URL: `mysql://user:password@host:3306/database?ttl=15`. See
-- docs/oracle-mysql.md.
-- @module crown.oracles.mysql

return require("crown.oracle.driven").oracle(require "crown.stores.mysql")
