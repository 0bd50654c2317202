-- The store does not answer, or comes back as it was.
return { title = "an outage", rules = "P5 R3", ttl = 8, cases = {
  { "of a store that freezes tells nothing, and costs nobody the lease",
    "one wins; two claims: denied; freeze; one refreshes: unknown; two claims: refused; thaw; "
      .. "one refreshes until it is answered: granted; two claims until it is answered: denied",
    needs = { "freeze" } },
  { "of a leader's way tells nothing, and costs it nothing",
    "one wins; two claims: denied; one is cut off; one refreshes: unknown; two claims: denied; one comes back; "
      .. "one refreshes until it is answered: granted",
    needs = { "cut" } },
  { "of all sessions costs nobody the lease",
    "one wins; two claims: denied; sessions; one refreshes until it is answered: granted; "
      .. "two claims until it is answered: denied; new claims: refused",
    needs = { "sessions" } },
  { "of a server that crashes and keeps what it has leads to no second leader",
    "one wins; two claims: denied; restart; two claims until it is answered: refused; new claims until it is answered: refused; "
      .. "one refreshes until it is answered: anything; two claims until it is answered: refused",
    needs = { "restart" } },
  { "of the right to log in tells nothing, and costs nobody the lease",
    "one wins; two claims: denied; deny; two claims: refused; new claims: refused; allow; "
      .. "one refreshes until it is answered: granted; two claims until it is answered: denied",
    needs = { "deny" } },
} }
