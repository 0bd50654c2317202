-- An operator evicts the leader.
return { title = "an eviction", rules = "R4", ttl = 8, needs = { "evict" }, cases = {
  { "lets another one lead, as soon as the leader has gone",
    "one wins; two claims: denied; evict; one hears the eviction and leaves; evict ends; two claims until it is answered: granted" },
  { "is over once it was heard",
    "one wins; evict; one hears the eviction and leaves; evict ends; one claims until it is answered: granted; one refreshes: granted" },
} }
