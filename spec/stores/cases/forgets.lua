-- The store has lost what it had, or has older data.
return { title = "a store that has lost its memory", rules = "R12", ttl = 5, cases = {
  { "is sat out by followers and newcomers",
    "one wins; two claims: denied; forget; two claims until it is answered: refused; new claims until it is answered: refused; "
      .. "one refreshes until it is answered: refused; one leaves; two wins",
    needs = { "forget" } },
  { "is sat out by newcomers alone",
    "one wins; forget; new claims until it is answered: refused; new2 claims until it is answered: refused; new wins",
    needs = { "forget" } },
  { "back to when nobody led gives the lease to nobody who has seen it",
    "remember; one wins; two claims: denied; older; two claims until it is answered: refused; "
      .. "new claims until it is answered: refused; one refreshes until it is answered: refused; one leaves; two wins",
    needs = { "older" } },
  { "back to when another one led gives the lease to nobody, that one included",
    "one wins; remember; one leaves; two wins; three claims: denied; older; "
      .. "three claims until it is answered: refused; one claims until it is answered: refused; "
      .. "new claims until it is answered: refused; two refreshes until it is answered: anything",
    needs = { "older" }, again = false },
} }
