-- The tables of spec/stores/cases on this store.
require "stores.run" "zookeeper"
