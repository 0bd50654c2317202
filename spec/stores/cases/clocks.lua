-- The wall clock of the store's server is set.
return { title = "a server whose clock is set", rules = "R14", ttl = 5, needs = { "clock" }, cases = {
  { "back, and put right after a refresh, is believed by nobody",
    "one wins; two claims: held; clock -3600; one refreshes until it is answered: anything; clock 0; "
      .. "two claims until it is answered: refused; new claims until it is answered: refused" },
  { "back is believed by nobody before it is put right",
    "one wins; two claims: held; clock -3600; two claims until it is answered: refused; "
      .. "new claims until it is answered: refused; clock 0; two claims until it is answered: refused" },
  { "forward is believed by nobody, and put right neither",
    "one wins; two claims: held; clock 3600; two claims until it is answered: refused; new claims until it is answered: refused; "
      .. "one refreshes until it is answered: anything; clock 0; two claims until it is answered: refused" },
  { "back and put right is believed by a follower when the leader has left in order",
    "one wins; clock -3600; one refreshes until it is answered: anything; one leaves; clock 0; two wins" },
} }
