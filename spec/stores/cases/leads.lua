-- What every store does while nothing happens to it.
return { title = "a leader", rules = "P1 P4 R6 R8", ttl = 5, cases = {
  { "is refreshed, and others are denied", "one wins; two claims: denied; one refreshes: granted; new claims: denied" },
  { "is followed at once when it leaves",
    "one wins; two claims: denied; one leaves; two claims: granted; one claims: denied; two leaves; one claims: granted" },
  { "is told of a lease that it has left", "one wins; one leaves; one refreshes: refused; two wins; one refreshes: refused" },
  { "does not lose its lease by what another one leaves",
    "one wins; two claims: denied; two leaves; one refreshes: granted; two claims: denied" },
  { "is not followed by a refresh", "one wins; two refreshes: refused; two claims: denied; one refreshes: granted" },
} }
