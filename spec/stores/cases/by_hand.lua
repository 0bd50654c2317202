-- Somebody deletes the record of an election.
return { title = "a record that is deleted by hand", rules = "R12", ttl = 5, needs = { "delete" }, cases = {
  { "leads to no second leader",
    "one wins; two claims: denied; delete; two claims until it is answered: refused; one refreshes until it is answered: anything" },
  { "is not needed after a leader has left", "one wins; two claims: denied; one leaves; delete; two wins; one claims: refused" },
} }
