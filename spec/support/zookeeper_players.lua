--- Candidates for elections on ZooKeeper, played by hand.
return require "support.players" { oracle = require "crown.oracles.zookeeper", prefix = "z-", ttl = 4,
  leave = function(player)
    player:abdicate()
    player.state.session:rest()
  end }
