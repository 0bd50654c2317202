-- A lease runs out, and no sooner.
return { title = "a lease", rules = "P2 R7", ttl = 3, cases = {
  { "ends by itself where its leader is cut off, and no sooner",
    "one wins; two claims: denied; one is cut off; two wins; one comes back; one refreshes until it is answered: refused; "
      .. "one claims until it is answered: refused",
    needs = { "cut" } },
  { "is not ended by newcomers", "one wins; new claims: refused; new2 claims: refused; one refreshes: granted; new claims: refused" },
} }
