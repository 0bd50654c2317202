-- Candidates with preferences: one that `is preferred` has 7, one that `is preferred a little` has 3; the others have 0.
return { title = "a preference", rules = "S17", ttl = 5, needs = { "prefer" }, cases = {
  { "has a leader go for a higher one that asks, the higher one claim first, and a lower one wait no longer than bounded",
    "one wins; one is preferred a little and asks for it; two is preferred and asks for it; two claims until one is to go and leaves; "
      .. "three claims: denied; three leaves; two claims until it is answered: granted; one claims for longer than it waits to ask; "
      .. "two refreshes: granted; new claims: denied; one leaves; two leaves; new claims: denied; new wins",
    again = false },
} }
