--- Candidates for advisory locks, played by hand. Their sessions end with the test.
return require "support.players" { oracle = require "crown.oracles.postgres_advisory", prefix = "advisory-", ttl = 2,
  leave = function(player) player.state.session.client:close() end }
