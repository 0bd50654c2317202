--- What `crown-lua help oracles` shows: the URL of each kind of store, with one line of what it is.
-- @internal crown.command.oracle_urls

local output = require "crown.command.output"

local oracle_urls = {}

local URLS = {
  { "file:DIR", "locks in a directory: for the processes of one host" },
  { "postgres://USER@HOST/DATABASE", "a lease in a table of Postgres" },
  { "postgres+advisory://USER@HOST/DATABASE", "a session's lock in Postgres: a few elections, next leader at once" },
  { "oban+postgres://USER@HOST/DATABASE", "leads where the leader of Elixir's Oban is" },
  { "registry+postgres://USER@HOST/DATABASE", "a leader among members that keep names" },
  { "redis://HOST/DB", "a lease in Redis; rediss:// with TLS" },
  { "redis+unix:///SOCKET", "the same over a UNIX socket" },
  { "redis+sentinel://HOST,HOST,HOST/MASTER", "the primary that most Sentinels name" },
  { "redis+cluster://HOST,HOST", "a Redis Cluster; rediss+cluster:// with TLS" },
  { "redis+majority://HOST,HOST,HOST", "most of several servers; rediss+majority:// with TLS" },
  { "etcd://HOST,HOST/PREFIX", "etcd's own election; etcds:// with TLS" },
  { "mysql://USER@HOST/DATABASE", "a lease in MySQL or MariaDB; mysqls:// with TLS" },
  { "s3://BUCKET/PREFIX", "a lease in objects of S3, or of a server like it" },
  { "consul://HOST,HOST/PREFIX", "a lock of Consul, beside consul lock; consuls:// with TLS" },
  { "k8s:NAMESPACE", "a Lease of Kubernetes, beside client-go" },
  { "zookeeper://HOST,HOST/PATH", "beside Curator or kazoo; zookeepers:// with TLS" },
  { "nats://HOST,HOST/BUCKET", "a key in a JetStream bucket, beside Choria; tls:// with TLS" },
  { "http://HOST/PATH", "a lease service of your own; https:// with TLS" },
  { "memory:SPACE", "inside one process, for tests" },
  { "MODULE://...", "an oracle of your own in Lua: docs/custom-oracles.md" },
}

--- Prints the table.
function oracle_urls.show()
  output.line "the store that decides who leads: --oracle URL, or CROWN_ORACLE\n"
  for _, one in ipairs(URLS) do output.line(("  %-40s %s"):format(one[1], one[2])) end
  output.line [[

Options follow a question mark: postgres://app@db/app?ttl=10. A password stands behind the user:
USER:PASSWORD@HOST. docs/oracles.md names the page of each store, with its options and rights.

Ask the store before you rely on it: crown-lua check --store --oracle URL run NAME COMMAND]]
end

return oracle_urls
