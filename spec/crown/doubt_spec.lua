-- What a candidate says while its store may have lost the record of who leads.
local Doubt = require "crown.oracle.doubt"

describe("a doubt", function()
  local party = { amnesia_wait = 30, trust_empty = false }

  it("of a store without a record names the store, the time, the reason and the options", function()
    assert.equal("redis at db:6379 has no record of this election. Waiting 30 s, in case another candidate still leads by a record "
      .. "that was lost (amnesia_wait=30; trust_empty=true skips this in a new store).",
      Doubt.of("redis", "redis://db:6379", party):words(29.7, true))
    assert.matches("Waiting 60 s, .* %(amnesia_wait=30, but no less than the longest ttl; trust_empty=true",
      Doubt.of("redis", "redis://db:6379", party):words(60, true))
    assert.matches("^mystore has no record of this election%. Waiting 0%.5 s, .* that was lost%.$", Doubt.of("mystore"):words(0.5, true))
  end)

  it("says that trust_empty=true, which is given already, does not help", function()
    local said = Doubt.of("etcd", "etcd://db:2379", { amnesia_wait = 30, trust_empty = true }):words(29.7, true)
    assert.equal("etcd at db:2379 may have lost records, or the one of this election. Waiting 30 s, in case another candidate "
      .. "still leads by a record that was lost (trust_empty=true does not skip this: the store is not new, or another candidate "
      .. "doubts it).", said)
  end)

  it("of a store that was there before says what may have happened to it, and no option that would not help", function()
    local said = Doubt.of("postgres", "postgres://db/app", party):words(15, false)
    assert.equal("postgres at db/app may have lost records: it was restarted, restored or failed over, its table was made anew or "
      .. "rewritten (ALTER TABLE, VACUUM FULL), or its clock was set. Waiting 15 s, until every lease that it may have "
      .. "granted is over.", said)
    assert.matches("failed over, its tables were made anew, or its", Doubt.of("mysql", "mysql://db/app", party):words(15, false))
    assert.matches("failed over, or its clock was set", Doubt.of("redis", "redis://db", party):words(15, false))
    assert.matches("it is new, or was restarted", Doubt.of("postgres", "postgres://db/app", party):words(15))
    assert.is_nil(Doubt.of("postgres", "postgres://db/app", { trust_empty = true }):words(15):find("is new", 1, true))
  end)

  it("of a store whose change is known says that, and nothing that did not happen", function()
    local doubt = Doubt.of("nats", "nats://h/B", party)
    doubt:because "the TTL of the bucket B was changed from 4 s to 14 s"
    assert.equal("nats at h/B: the TTL of the bucket B was changed from 4 s to 14 s. Waiting 9 s, until every lease that it may "
      .. "have granted is over.", doubt:words(9))
    doubt:because(nil)
    assert.matches("may have lost records", doubt:words(9))
  end)

  for url, place in pairs {
    ["redis://user:p@ss?w/rd@db:6379/0?ttl=5"] = false, -- whatever of it is shown, nothing before the last @ is
    ["redis://user:secret@db:6379/0?ttl=5"] = "db:6379/0",
    ["nats://a:4222,b:4222/BUCKET?user=x"] = "a:4222,b:4222/BUCKET",
    ["etcd://host:2379/"] = "host:2379",
    ["redis+sentinel://one,two/mine"] = "one,two/mine",
  } do
    it("shows no secret of " .. url, function()
      local said = Doubt.of("store", url, party):words(5, true)
      assert.is_nil(said:find("secret", 1, true) or said:find("user", 1, true))
      if place then assert.is_truthy(said:find("^store at " .. place:gsub("%p", "%%%0") .. " has no record")) end
    end)
  end

  it("is what a claim is answered, with what the caller knows besides", function()
    local granted, holder = Doubt.of("redis", "redis://db", party):denial(5, false, { node = "ann", epoch = 7, expires_in = 6 })
    assert.is_false(granted)
    assert.same({ "ann", 7, 6, true }, { holder.node, holder.epoch, holder.expires_in, holder.amnesia })
    assert.matches("Waiting 5 s", holder.error)
    assert.equal("gone", select(2, Doubt.of "x":denial(5, nil, { error = "gone" })).error)
  end)
end)
