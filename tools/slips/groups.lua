--- Which folders are judged together, what share of their slips is to be killed (`least`), what a run holds where that is not
-- reached yet (`held`: raise it as tests are added), and how much of a sample is theirs.
local groups = {
  { name = "election", least = 0.95, held = 0.95, of = { "runtime/election/" }, part = "core" },
  { name = "process", least = 0.95, held = 0.8, of = { "runtime/process/" }, part = "core" },
  { name = "candidate", least = 0.95, held = 0.9, of = { "runtime/candidate/" }, part = "core" },
  { name = "register", least = 0.95, held = 0.80, part = "register", of = { "lua/crown/register/", "lua/crown/oracle/driven",
    "lua/crown/oracle/majority" } },
  { name = "drivers", least = 0.95, held = 0.6, part = "register", of = { "lua/stores/", "lua/crown/mysql/statements",
    "lua/crown/postgres/register", "lua/crown/redis/question" } },
  { name = "stores", least = 0.95, held = 0.6, part = "stores", of = { "lua/oracles/", "lua/crown/oracle/", "lua/crown/postgres/",
    "lua/crown/redis/", "lua/crown/etcd/", "lua/crown/nats/", "lua/crown/mysql/", "lua/crown/s3/", "lua/crown/consul/",
    "lua/crown/kubernetes/", "lua/crown/zookeeper/" } },
  { name = "rest", least = 0.9, held = 0.6, of = { "" }, part = "rest" },
}

--- Of ten slips of a sample so many are of a part, in this order.
groups.TURNS = { "core", "register", "rest", "core", "stores", "core", "register", "rest", "core", "stores" }

--- The group of a file.
function groups.of(file)
  for _, group in ipairs(groups) do
    for _, prefix in ipairs(group.of) do
      if file:sub(1, #prefix) == prefix then return group end
    end
  end
end

return groups
