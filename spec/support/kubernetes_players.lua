--- Candidates for elections in Leases, played by hand.
return require "support.players" { oracle = require "crown.oracles.kubernetes", prefix = "k-", ttl = 5,
  leave = function(player)
    player.state.client.ask = nil
    player:abdicate()
  end }
