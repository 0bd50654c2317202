--- Candidates for elections on etcd, played by hand.
return require "support.players" { oracle = require "crown.oracles.etcd", prefix = "e-", ttl = 5,
  leave = function(player) player:abdicate() end }
