-- The store does not answer for longer than a candidate asks.
return { title = "a store that is silent", rules = "P5 R3", ttl = 16, needs = { "freeze" }, cases = { -- the TTL would make it 4 s
  { "is known not to answer within the time-out, and costs nobody the lease",
    "one wins; freeze; one refreshes within its time-out: unknown; two claims within its time-out: refused; thaw; "
      .. "one refreshes until it is answered: granted", again = false },
} }
