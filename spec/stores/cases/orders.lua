-- An operator has nobody lead, or another one.
return { title = "an order", rules = "S15", ttl = 8, needs = { "order" }, cases = {
  { "has nobody lead while it is a pause, and the leader go",
    "one wins; two claims: denied; pause; one hears that it is to go and leaves; two claims: denied; one claims: denied; new claims: "
      .. "refused; resume; two claims until it is answered: granted" },
  { "lets who leads go on through a pause, and nobody follow",
    "one wins; pause keep; two claims: denied; one refreshes: granted; one leaves; two claims: denied; one claims: denied; resume; "
      .. "two claims until it is answered: granted" },
  { "ends by itself",
    "one wins; pause keep for 0; one refreshes: granted; one leaves; two claims until it is answered: granted" },
  { "has a node lead next, and nobody else meanwhile",
    "one wins; two claims: denied; hand over to two; one hears that it is to go and leaves; three claims: denied; one claims: denied; "
      .. "two claims until it is answered: granted; two leaves; three claims until it is answered: granted" },
  { "lets anybody lead when that node does not come",
    "one wins; hand over to nobody within 1; one hears that it is to go and leaves; two claims: denied; two wins" },
  { "outlives the leader's end, and an eviction",
    "one wins; evict; one hears the eviction and leaves; evict ends; pause; one claims: denied; two claims: denied; resume; one wins" },
} }
