#include "base/advice.h"

#include <stdio.h>
#include <string.h>

struct kind {
    const char *const *signs; /* any of them in the problem, * for anything; ends with NULL */
    const char *plain;        /* %s: how a URL asks for TLS; a store may have words of its own */
    const char *encrypted;    /* where TLS is spoken, or cannot be asked for by a scheme */
    const char *spoke;        /* where the server has answered before; NULL: as otherwise */
};

#define ROOM "make room there, or raise its limit"
#define CROWD "raise the server's max_connections, or the account's, or end clients"
#define READ_ONLY "is it a replica, or was it set so?"
#define DATABASE "the database is missing: make it (createdb NAME), or mend its name in the URL"
#define LOCK "another session holds a lock on the table or the row: see pg_locks"
#define OFFER "turn it on there"
#define CA "name the file of the server's authority by ca=FILE"
#define CERT "the server wants a certificate that it trusts: name it by cert=FILE and key=FILE"
#define OWN "the server does not trust the certificate of cert=FILE: is it out of date?"
#define KEY "name the file of its key by key=FILE"

/* How a URL asks for TLS. */
static const char *tls_word(const char *store)
{
    static const char *const words[][2] = {{"redis", "rediss://"}, {"nats", "tls://"},
                                           {"etcd", "etcds://"},   {"http", "https://"},
                                           {"mysql", "mysqls://"}, {"zookeeper", "zookeepers://"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i][0], store) == 0)
            return words[i][1];
    return NULL;
}

/* Where a store has words of its own: libpq has other names for the files of TLS, and does not tell
 * what it has against a certificate. */
static const char *words_of(const char *store, const char *step)
{
    static const char *const words[][3] = {
        {ROOM, "redis", "raise the server's maxmemory, or delete keys that nobody needs"},
        {ROOM, "nats",
         "raise the limit (nats stream edit, or the account's), or delete what nobody needs"},
        {ROOM, "etcd",
         "compact and defragment it, or raise --quota-backend-bytes; then etcdctl alarm disarm"},
        {ROOM, "postgres", "make room on the server's disk (df -h and df -i show what is full)"},
        {CROWD, "redis", "raise the server's maxclients, or end clients"},
        {CROWD, "mysql",
         "raise max_connections, or the user's max_user_connections, or end clients"},
        {READ_ONLY, "postgres",
         "is it a standby, or is default_transaction_read_only on for the role or the database?"},
        {DATABASE, "mysql",
         "the database is missing: make it (CREATE DATABASE NAME), or mend its name in the URL"},
        {LOCK, "mysql",
         "another session holds a lock on the table or the row: see SHOW PROCESSLIST"},
        {OFFER, "mysql",
         "turn it on there, or have the URL begin with mysql://, which encrypts nothing"},
        {OFFER, "nats",
         "turn it on there, or have the URL begin with nats://, which encrypts nothing"},
        {CA, "postgres",
         "is it out of date, or by an authority that sslrootcert=FILE does not name?"},
        {CERT, "postgres",
         "the server wants a certificate that it trusts: name it by sslcert=FILE and sslkey=FILE"},
        {OWN, "postgres",
         "the server does not trust the certificate of sslcert=FILE: is it out of date?"},
        {KEY, "postgres", "name the file of its key by sslkey=FILE"},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i][0], step) == 0 && strcmp(words[i][1], store) == 0)
            return words[i][2];
    return step;
}

/* Whether a sign is in a problem. */
static bool is_in(const char *problem, const char *sign)
{
    const char *gap = strchr(sign, '*');
    if (gap == NULL)
        return strstr(problem, sign) != NULL;
    for (const char *at = problem; *at != '\0'; at++)
        if (strncmp(at, sign, (size_t)(gap - sign)) == 0)
            return strstr(at + (gap - sign), gap + 1) != NULL;
    return false;
}

/* The first kind that fits counts. */
static const struct kind *find(const struct kind *kinds, size_t count, const char *problem)
{
    for (size_t i = 0; i < count; i++)
        for (const char *const *sign = kinds[i].signs; *sign != NULL; sign++)
            if (is_in(problem, *sign))
                return &kinds[i];
    return NULL;
}

/* What the server has answered may have words in it that tell of a failed connection. */
static const struct kind *kind_of(const char *problem, bool answered)
{
    static const char *const said[] = {"TLS turned on",  "percent-encode", " has the URL begin ",
                                       "out of the URL", "ulimit",         NULL};
    static const char *const full[] = {"OOM command",
                                       "maximum bytes exceeded",
                                       "maximum messages exceeded",
                                       "maximum subjects exceeded",
                                       "insufficient resources",
                                       "insufficient storage",
                                       "insufficient memory",
                                       "resource limit",
                                       "database space exceeded",
                                       "No space left",
                                       "could not extend file",
                                       "Disk quota exceeded",
                                       "answered 507",
                                       NULL};
    static const char *const largest[] = {"message size exceeds maximum allowed",
                                          "Maximum Payload Violation", NULL};
    static const char *const crowded[] = {
        "maximum connections exceeded",  "maximum account active connections exceeded",
        "too many connections",          "too many clients",
        "remaining connection slots",    "Too many connections",
        "max_user_connections",          "no more connections allowed",
        "max number of clients reached", NULL};
    static const char *const crowded_role[] = {"too many connections for role", NULL};
    static const char *const crowded_database[] = {"too many connections for database", NULL};
    static const char *const no_entry[] = {"ermission denied for database", NULL};
    static const char *const no_call[] = {"ermission denied for function", NULL};
    static const char *const no_schema[] = {"ermission denied for schema", NULL};
    static const char *const read_only[] = {"is read-only", "read-only transaction",
                                            "read-only option", NULL};
    static const char *const no_offer[] = {"does not offer TLS", NULL};
    static const char *const locked[] = {"ccount is locked", NULL};
    static const char *const row_rule[] = {"row-level security", NULL};
    static const char *const nowhere[] = {"no schema has been selected", NULL};
    static const char *const cancelled[] = {"due to statement timeout", NULL};
    static const char *const busy[] = {"is busy running a script", NULL};
    static const char *const no_ssl[] = {"does not support SSL", NULL};
    static const char *const guarded[] = {"running in protected mode", NULL};
    static const char *const no_index[] = {"DB index is out of range", NULL};
    static const char *const apart[] = {"replicas have it", NULL};
    static const char *const no_sentinel[] = {"unknown command *SENTINEL", NULL};
    static const char *const files[] = {"Too many open files", NULL};
    static const char *const tls_spoken[] = {
        "\\x15",    "\x15", "HTTP request to an HTTPS server", "Unsupported protocol",
        "HTTP/0.9", NULL};
    static const char *const login[] = {"WRONGPASS",
                                        "NOAUTH",
                                        "invalid password",
                                        "Authorization",
                                        "authentication",
                                        "answered 401",
                                        "invalid user name",
                                        "no password",
                                        "without any password",
                                        "Access denied for user '*' (using",
                                        NULL};
    /* Postgres's own: libpq gives no SQLSTATE of a connection that failed */
    static const char *const database[] = {"database \"*\" does not exist", "no such database",
                                           "Unknown database", NULL};
    static const char *const role[] = {"role \"*\" does not exist", "no such user", NULL};
    static const char *const asleep[] = {"is not permitted to log in", NULL};
    static const char *const hba[] = {"pg_hba.conf", NULL};
    static const char *const outdated[] = {"must SET PASSWORD", "password has expired", NULL};
    static const char *const rate[] = {"_per_hour'", NULL};
    static const char *const no_database[] = {"Access denied for user '*' to database", NULL};
    static const char *const rights[] = {"NOPERM",
                                         "ermission",
                                         "user executing the script",
                                         "answered 403",
                                         "command denied to user",
                                         "Access denied for user",
                                         NULL};
    static const char *const alone[] = {"NOREPLICAS", NULL};
    static const char *const down[] = {"CLUSTERDOWN", NULL};
    static const char *const library[] = {"could not access file", NULL};
    static const char *const lock[] = {"lock timeout", "Lock wait timeout",
                                       "max_statement_time exceeded", NULL};
    static const char *const no_socket[] = {"unix:*refused", "unix:*No such file", NULL};
    static const char *const refused[] = {"refused", "Couldn't connect", "No such file", NULL};
    static const char *const name[] = {"name not found", "look up", "no address", "name server",
                                       NULL};
    /* an alert is the server's word on our own certificate */
    static const char *const no_own[] = {"alert certificate required", "alert bad certificate",
                                         "valid client certificate", NULL};
    static const char *const own[] = {"alert unknown ca", "alert certificate ",
                                      "alert unsupported certificate", NULL};
    static const char *const no_key[] = {"not private key file", NULL};
    static const char *const date[] = {"certificate has expired", "not yet valid", NULL};
    static const char *const other_name[] = {"ostname mismatch", "address mismatch",
                                             "certificate subject name", "not match host name",
                                             NULL};
    static const char *const certificate[] = {"ertificate", "hostname", NULL};
    static const char *const silent[] = {
        "imeout",       "no answer",    "in time",          "closed",      "reset",
        "Failure when", "Recv failure", "returned nothing", "Broken pipe", NULL};
    static const char *const foreign[] = {
        "not a reply", "not a message", "nothing that",     "no JSON",
        "unexpected",  "expected",      "invalid response", NULL};
    static const char *const alert[] = {" alert ", NULL};
    static const char *const status[] = {" answered ", NULL};
    static const char *const route[] = {"route to host", "unreachable", NULL};
    static const char no_tls[] = "is it the right port, and does the server expect TLS (%s)?";
    static const char port[] =
        "is it the right port, and does a firewall or a proxy stand between?";
    static const char log[] = "look at the server's log, and at the network";
    static const char rights_words[] =
        "crown-lua check --store names the rights that the user lacks";
    static const char login_words[] =
        "check the user and the password in the URL: all but letters and digits percent-encoded";
    static const char hba_words[] =
        "let this user in from this host by a line of the server's pg_hba.conf, and reload it";
    static const struct kind answers[] = {
        {said, NULL, NULL, NULL},
        {full, ROOM, NULL, NULL},
        {largest,
         "allow writes of 512 bytes: max_msg_size of the bucket, max_payload of the server", NULL,
         NULL},
        {crowded_role, "raise the role's limit (ALTER ROLE … CONNECTION LIMIT), or end clients",
         NULL, NULL},
        {crowded_database,
         "raise the database's limit (ALTER DATABASE … CONNECTION LIMIT), or end clients", NULL,
         NULL},
        {no_entry, "allow it (GRANT CONNECT ON DATABASE …)", NULL, NULL},
        {no_call, "allow it (GRANT EXECUTE ON FUNCTION …)", NULL, NULL},
        {no_schema, "allow it (GRANT USAGE ON SCHEMA …, and CREATE for who makes tables)", NULL,
         NULL},
        {crowded, "raise the server's max_connections, or the account's, or end clients", NULL,
         NULL},
        {read_only, READ_ONLY, NULL, NULL},
        {no_offer, OFFER, NULL, NULL},
        {row_rule, "turn it off (ALTER TABLE … DISABLE ROW LEVEL SECURITY), or allow the role all",
         NULL, NULL},
        {nowhere,
         "make the schema (CREATE SCHEMA …), or name one that is there (ALTER ROLE … SET "
         "search_path)",
         NULL, NULL},
        {cancelled, "is the server busy, or does another session hold a lock (pg_stat_activity)?",
         NULL, NULL},
        {alone, "start its replicas again, or lower the server's min-replicas-to-write", NULL,
         NULL},
        {down, "has each slot a primary that lives (redis-cli --cluster check HOST:PORT)?", NULL,
         NULL},
        {library,
         "is the library there that the role or the server loads (local_preload_libraries)?", NULL,
         NULL},
        {busy, "end the script (redis-cli SCRIPT KILL), or wait for its end", NULL, NULL},
        {no_ssl, "turn ssl on in the server, or take sslmode out of the URL", NULL, NULL},
        {guarded,
         "have Redis let other hosts in: give its default user a password (requirepass), or turn "
         "protected-mode off",
         NULL, NULL},
        {no_index, "the server has fewer databases: mend the number in the URL", NULL, NULL},
        {apart, "are the replicas connected (INFO replication)? Else lower min_replicas", NULL,
         NULL},
        {no_sentinel, "no Sentinel answers there: name the Sentinels' hosts and ports in the URL",
         NULL, NULL},
        {tls_spoken, "does the server expect TLS (%s)?", "is it the right port?", NULL},
        {hba, hba_words, NULL, NULL},
        {login, login_words, NULL, NULL},
        {asleep, "allow it (ALTER ROLE … LOGIN), or mend the user in the URL", NULL, NULL},
        {locked, "unlock it (ALTER USER … ACCOUNT UNLOCK), or mend the user in the URL", NULL,
         NULL},
        {role, "the role is missing: make it (createuser NAME), or mend the user in the URL", NULL,
         NULL},
        {database, DATABASE, NULL, NULL},
        {outdated, "the user's password is out of date: set it anew (ALTER USER … IDENTIFIED BY …)",
         NULL, NULL},
        {rate, "raise the user's limit (ALTER USER … WITH …_PER_HOUR 0): a candidate asks often",
         NULL, NULL},
        {no_database,
         "mend its name in the URL, or make it (CREATE DATABASE …) and allow it (GRANT … ON …)",
         NULL, NULL},
        {rights, rights_words, NULL, NULL},
        {lock, LOCK, NULL, NULL},
    };
    static const struct kind failures[] = {
        {files, "raise the limit of open files (ulimit -n)", NULL, NULL},
        {no_socket, "is the server running, and is this the path of its socket?", NULL, NULL},
        {refused, "is the server running, and are host and port right?", NULL, NULL},
        {name, "check the host in the URL", NULL, NULL},
        {no_own, CERT, NULL, NULL},
        {own, OWN, NULL, NULL},
        {no_key, KEY, NULL, NULL},
        {date, "renew the server's certificate, or set the clocks right", NULL, NULL},
        {other_name, "the certificate is for another name: have the URL name the server so", NULL,
         NULL},
        {certificate, CA, NULL, NULL},
        {route, "check the host in the URL, and the network", NULL, NULL},
        {alert, "the server ended the handshake: does it ask for a certificate (cert=, key=)?",
         NULL, NULL},
        {status, "is the path in the URL right, and what does the server's log say?", NULL, NULL},
        {silent, no_tls, port, log},
        {foreign, no_tls, "is it the right port?", NULL},
    };
    const struct kind *kind = find(answers, sizeof(answers) / sizeof(answers[0]), problem);
    if (kind != NULL || answered)
        return kind;
    return find(failures, sizeof(failures) / sizeof(failures[0]), problem);
}

bool advice(const struct advice_link *link, const char *problem, char *text, size_t size)
{
    const struct kind *kind = kind_of(problem, link->answered);
    if (kind == NULL || kind->plain == NULL)
        return false;
    const char *scheme = tls_word(link->store);
    const char *before = link->spoke && kind->spoke != NULL ? kind->spoke : kind->plain;
    before = words_of(link->store, before);
    const char *gap = strstr(before, "%s");
    if (gap != NULL && (link->tls || scheme == NULL))
        before = kind->encrypted;
    else if (gap != NULL) {
        (void)snprintf(text, size, "%.*s%s%s", (int)(gap - before), before, scheme, gap + 2);
        return true;
    }
    (void)snprintf(text, size, "%s", before);
    return true;
}
