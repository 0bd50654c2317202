-- The tables of spec/stores/cases on the stand-in for S3.
require "stores.run" "s3"
