--- A lease in a bucket of S3: an object for each record. URL: `s3://BUCKET/PREFIX?region=NAME`. See docs/oracle-s3.md.
-- @module crown.oracles.s3

return require("crown.oracle.driven").oracle(require "crown.stores.s3")
