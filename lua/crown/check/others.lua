--- What other systems call things, for whoever moves in and writes their words.
-- @internal crown.check.others

local others = {}

local SHELL = "here it is -- sh -c 'COMMAND'"
local TREE = "the command holds the lock here, so that it is free when its whole tree is dead"
local EVENT = "none is needed: a follower knows when the lease ends, and hears of a release from the store"
local RESTART = "the child's restart policy: child = { …, restart = { policy = … } }"
local NO_STORE = "that is no store here: take etcd, Postgres, MySQL, Redis, S3, Consul, Kubernetes, ZooKeeper or NATS"

-- By the word in small letters, without what is neither letter nor digit: which of ours it may be, and what to say where
-- none of these is known.
local WORDS = {
  -- Crown
  childspec = { "child" },
  followerchildspec = { "follower_child" },
  repo = { say = "the database is the URL: postgres://…; in an app url = 'postgres://…'" },
  baseurl = { "url", say = "the service is the URL: http://…" },
  lockname = { "lock" },
  refreshdelay = { "refresh", "check" },
  monitordelay = { say = EVENT },
  monitortimeout = { say = EVENT },
  strategy = { say = RESTART },
  restart = { "restart", say = RESTART },
  shutdown = { "stop_timeout", say = "child = { …, stop_timeout = SECONDS }" },
  maxrestarts = { "max", say = "child = { …, restart = { max = … } }" },
  -- Choria
  election = { "election", say = "here it is crown-lua run, file, info or evict" },
  bucket = { "bucket", say = "NATS and S3 have one, as a part of the URL: nats://HOST/BUCKET, s3://BUCKET" },
  onwon = { "won", say = "handlers = { won = … }" },
  onlost = { "lost", say = "handlers = { lost = … }" },
  oncampaign = { "campaign", say = "handlers = { campaign = … }" },
  withbackoff = { "backoff" },
  twentysec = { "twenty_sec" },
  fivesec = { "five_sec" },
  leaderelectionttl = { "ttl" },
  leaderelectionreplicas = { "replicas" },
  middlewarehosts = { "url", say = "the servers are part of the URL: --oracle nats://HOST,HOST/BUCKET" },
  identity = { "node", "--node" },
  watch = { say = "here it is crown-lua info --watch" },
  -- an advisory lock of one's own
  objid = { "key" },
  id = { "key" },
  lockid = { "key" },
  -- flock, consul lock, etcdctl
  lock = { "lock", "run", say = "oracle = { …, lock = … }" },
  elect = { "run" },
  n = { say = "here it is --once: give up when somebody else leads" },
  nb = { say = "here it is --once: give up when somebody else leads" },
  nonblock = { "--once" },
  try = { say = "here it is --once, with --wait SECONDS" },
  w = { "--wait" },
  timeout = { "timeout", "--wait" },
  e = { say = "there is one leader, always; the exit code is 1 when somebody else leads" },
  conflictexitcode = { say = "the exit code is 1 when somebody else leads, 3 when the store cannot be reached" },
  c = { say = SHELL },
  command = { "command", "child", say = SHELL },
  shell = { say = "no shell is involved; " .. SHELL },
  o = { say = TREE },
  close = { say = TREE },
  s = { say = "there is one leader: no lock is shared" },
  shared = { say = "there is one leader: no lock is shared" },
  x = { say = "flock's -x: an election has one leader, always, so there is no such option" },
  exclusive = { say = "there is one leader: that is always so" },
  name = { "name", "--node" },
  monitorretry = { say = "a store that is away is no loss: the leader leads on until its deadline" },
  childexitcode = { say = "the exit code is always the command's" },
  passstdin = { say = "the command always has the terminal" },
  httpaddr = { "url", "--oracle" },
  endpoints = { "url", "--oracle" },
  kv = { say = "a store's keys are for its own client: crown-lua info shows who leads" },
  get = { "info" },
  put = { say = "a store's keys are for its own client" },
  -- client-go, Oban
  leaseduration = { "ttl", "--ttl" },
  sessionttl = { "ttl", "--ttl" },
  leasettl = { "ttl", "--ttl" },
  renewdeadline = { say = "the deadline follows from ttl and stop_timeout: crown-lua check prints it" },
  retryperiod = { "refresh" },
  releaseoncancel = { say = "a lease is always released, when the command's tree is dead" },
  onstartedleading = { "won", say = "handlers = { won = … }" },
  onstoppedleading = { "lost", say = "handlers = { lost = … }" },
  onnewleader = { "leader", say = "handlers = { leader = … }" },
  interval = { "ttl", "check" },
  -- restart policies of systemd, Docker and Kubernetes
  always = { "permanent" },
  unlessstopped = { "permanent" },
  onfailure = { "transient" },
  never = { "temporary" },
  no = { "temporary" },
  -- URLs
  choria = { "nats", "nats_kv" },
  jetstream = { "nats", "nats_kv" },
  pg = { "postgres", "postgres_lease" },
  psql = { "postgres", "postgres_lease" },
  ecto = { "postgres", "postgres_lease" },
  advisory = { "postgres+advisory", "postgres_advisory" },
  mariadb = { "mysql" },
  minio = { "s3" },
  ceph = { "s3" },
  oban = { "oban+postgres", "oban_peer" },
  registry = { "registry+postgres" },
  dgen = { "registry+postgres", "registry" },
  kubernetes = { "k8s" },
  zk = { "zookeeper" },
  curator = { "zookeeper" },
  kazoo = { "zookeeper" },
  fdb = { say = NO_STORE },
  foundationdb = { say = NO_STORE },
  -- oracles
  postgres = { "postgres_lease" },
  postgreslease = { "postgres_lease" },
  crownoraclespostgreslease = { "postgres_lease" },
  obanpeer = { "oban_peer" },
  crownoraclesobanpeer = { "oban_peer" },
  httplease = { "http_lease" },
  httpleaseoracle = { "http_lease" },
  nats = { "nats_kv" },
}

--- A word as it is compared: in small letters, without dashes, dots and underlines.
-- @string word
-- @treturn string
function others.plain(word)
  return (word:lower():gsub("[^%w]", ""))
end

--- What another system's word is here.
-- @string word what was written
-- @tparam table known an array of our words that are possible in its place
-- @treturn string one of those known, or nil
-- @treturn string what else to say, or nil
function others.find(word, known)
  local plain = others.plain(word)
  local entry = WORDS[plain]
  if not entry or #plain == 1 and word:sub(1, 1) ~= "-" then return nil end -- a letter is an option's name, never a value
  for _, ours in ipairs(entry) do
    for _, candidate in ipairs(known) do
      if candidate == ours then return ours end
    end
  end
  return nil, entry.say
end

return others
