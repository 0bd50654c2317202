-- The tables of spec/stores/cases on the stand-in for Consul.
require "stores.run" "consul"
