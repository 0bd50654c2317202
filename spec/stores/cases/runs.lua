-- A command that is run once in a period: what has become of it stands in the store.
return { title = "a run", rules = "S16", ttl = 8, needs = { "runs" }, cases = {
  { "that has succeeded is begun by nobody who asks for that, and by others",
    "one asks for runs; two asks for runs; one wins; two claims: denied; one has run it and leaves; two claims: denied; "
      .. "one claims: denied; new claims until it is answered: granted; new leaves; two claims: denied; the runs are forgotten; two wins" },
  { "that has failed is begun again, and a pause and a mark stand beside each other",
    "one asks for runs; two asks for runs; one wins; one has failed and leaves; two wins; pause keep; two has run it and leaves; "
      .. "new claims: denied; one claims: denied; resume; one claims: denied; new claims until it is answered: granted; new leaves; "
      .. "one claims: denied; the runs are forgotten" },
} }
