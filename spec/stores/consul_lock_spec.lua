-- The tables of spec/stores/cases on the stand-in for Consul, in the format of `consul lock`.
require "stores.run" "consul_lock"
