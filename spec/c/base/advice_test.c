#include "base/advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *step(const struct advice_link *link, const char *problem)
{
    static char text[200];
    return advice(link, problem, text, sizeof(text)) ? text : NULL;
}

static void the_scheme_with_tls_is_the_stores_own(void **state)
{
    (void)state;
    static const char *const schemes[][2] = {{"redis", "(rediss://)"},
                                             {"nats", "(tls://)"},
                                             {"etcd", "(etcds://)"},
                                             {"http", "(https://)"}};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const struct advice_link link = {.store = schemes[i][0]};
        assert_non_null(strstr(step(&link, "no answer in time"), schemes[i][1]));
        assert_non_null(strstr(step(&link, "not a reply: \x15"), schemes[i][1]));
    }
}

static void tls_is_not_proposed_where_it_is_spoken_or_has_no_scheme(void **state)
{
    (void)state;
    const struct advice_link encrypted = {.store = "redis", .tls = true};
    const struct advice_link postgres = {.store = "postgres"};
    assert_null(strstr(step(&encrypted, "no answer in time"), "TLS"));
    assert_null(strstr(step(&postgres, "no answer in time"), "TLS"));
    assert_null(strstr(step(&postgres, "no answer in time"), "%s"));
}

static void a_server_that_has_answered_has_the_right_port(void **state)
{
    (void)state;
    const struct advice_link spoke = {.store = "redis", .spoke = true};
    const struct advice_link mute = {.store = "redis"};
    assert_string_equal(step(&spoke, "the server closed the connection"),
                        "look at the server's log, and at the network");
    assert_non_null(strstr(step(&mute, "the server closed the connection"), "right port"));
    assert_non_null(strstr(step(&spoke, "Connection refused"), "is the server running"));
}

static void what_says_the_next_step_itself_gets_no_other(void **state)
{
    (void)state;
    const struct advice_link link = {.store = "redis", .tls = true};
    assert_null(step(&link, "TLS: the other side broke off: is TLS turned on at the other end?"));
    assert_null(step(&link, "nothing of the kind"));
}

static void a_server_that_refuses_gets_the_step_that_helps_it(void **state)
{
    (void)state;
    const struct advice_link redis = {.store = "redis"};
    const struct advice_link postgres = {.store = "postgres"};
    assert_non_null(strstr(step(&redis, "NOREPLICAS Not enough good replicas to write. script: 1"),
                           "min-replicas-to-write"));
    assert_non_null(strstr(step(&redis, "CLUSTERDOWN The cluster is down"), "--cluster check"));
    assert_non_null(
        strstr(step(&postgres, "could not access file \"$libdir/nope\": No such file or directory"),
               "local_preload_libraries"));
}

static void an_answer_is_no_failed_connection(void **state)
{
    (void)state;
    const struct advice_link link = {.store = "redis", .answered = true};
    assert_null(step(&link, "ERR unexpected timeout"));
    assert_non_null(strstr(step(&link, "NOPERM no permissions"), "check --store"));
    assert_non_null(
        strstr(step(&link, "ERR The user executing the script can't run this"), "check --store"));
}

static void a_store_that_is_full_is_given_room_in_its_own_way(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"redis", "OOM command not allowed when used memory > 'maxmemory'", "maxmemory"},
        {"nats", "maximum bytes exceeded", "nats stream edit"},
        {"nats", "maximum messages exceeded", "nats stream edit"},
        {"nats", "insufficient resources", "or the account's"},
        {"nats", "insufficient storage resources available", "or the account's"},
        {"nats", "resource limits exceeded for account", "or the account's"},
        {"nats", "message size exceeds maximum allowed", "max_msg_size"},
        {"nats", "the server says: Maximum Payload Violation", "max_payload"},
        {"nats", "the server says: maximum connections exceeded", "max_connections"},
        {"etcd", "etcdserver: mvcc: database space exceeded", "etcdctl alarm disarm"},
        {"postgres", "could not extend file \"base/5/16384\": No space left on device", "df -h"},
        {"http", "the lease server answered 507", "make room there"},
        {"other", "No space left on device", "make room there"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct advice_link link = {.store = cases[i][0], .spoke = true};
        assert_non_null(step(&link, cases[i][1]));
        assert_non_null(strstr(step(&link, cases[i][1]), cases[i][2]));
    }
}

static void a_server_that_takes_no_more_clients_or_writes_is_mended_in_its_own_way(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"mysql", "Too many connections", "max_user_connections"},
        {"mysql", "User 'one' has exceeded the 'max_user_connections' resource", "raise"},
        {"redis", "ERR max number of clients reached", "maxclients"},
        {"postgres", "sorry, too many clients already", "max_connections"},
        {"postgres", "session is read-only", "default_transaction_read_only"},
        {"mysql", "The MariaDB server is running with the --read-only option so it cannot",
         "replica"},
        {"mysql", "Access denied, this account is locked", "ACCOUNT UNLOCK"},
        {"mysql", "the server does not offer TLS", "mysql://"},
        {"mysql", "Unknown database 'crown'", "CREATE DATABASE"},
        {"mysql", "Lock wait timeout exceeded; try restarting transaction", "PROCESSLIST"},
        {"mysql", "Query execution was interrupted (max_statement_time exceeded)", "PROCESSLIST"},
        {"postgres", "canceling statement due to lock timeout", "pg_locks"},
        {"nats", "the server does not offer TLS", "nats://"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct advice_link link = {.store = cases[i][0], .answered = true};
        assert_non_null(step(&link, cases[i][1]));
        assert_non_null(strstr(step(&link, cases[i][1]), cases[i][2]));
    }
}

static void each_kind_has_its_step(void **state)
{
    (void)state;
    const struct advice_link link = {.store = "redis"};
    static const char *const pairs[][2] = {
        {"WRONGPASS invalid username-password pair", "the user and the password"},
        {"DENIED Redis is running in protected mode and no password is set for the default user",
         "protected-mode off"},
        {"NOPERM this user has no permissions", "check --store"},
        {"permission denied for table x", "check --store"},
        {"Domain name not found", "host in the URL"},
        {"certificate verify failed", "ca=FILE"},
        {"No route to host", "network"},
        {"sslv3 alert handshake failure", "cert="},
        {"the lease server answered 400", "path"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const char *found = step(&link, pairs[i][0]);
        assert_non_null(found);
        assert_non_null(strstr(found, pairs[i][1]));
    }
}

static void each_trouble_with_certificates_has_a_step_of_its_own(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"redis", "certificate verify failed: certificate has expired", "renew the server's"},
        {"etcd", "SSL certificate problem: certificate has expired", "renew the server's"},
        {"nats", "certificate verify failed: certificate is not yet valid", "clocks"},
        {"mysql", "certificate verify failed: hostname mismatch", "for another name"},
        {"redis", "certificate verify failed: IP address mismatch", "for another name"},
        {"etcd", "SSL: no alternative certificate subject name matches target host name 'a'",
         "for another name"},
        {"postgres", "server certificate for \"db\" does not match host name \"127.0.0.1\"",
         "for another name"},
        {"redis", "tlsv13 alert certificate required", "cert=FILE and key=FILE"},
        {"nats", "sslv3 alert bad certificate", "cert=FILE and key=FILE"},
        {"postgres", "connection requires a valid client certificate", "sslcert=FILE and sslkey="},
        {"etcd", "tlsv1 alert unknown ca", "does not trust the certificate of cert=FILE"},
        {"redis", "sslv3 alert certificate expired", "does not trust the certificate of cert="},
        {"postgres", "tlsv1 alert unknown ca", "certificate of sslcert=FILE"},
        {"postgres", "certificate present, but not private key file \"k\"", "sslkey=FILE"},
        {"redis", "certificate verify failed: self signed certificate", "by ca=FILE"},
        {"postgres", "SSL error: certificate verify failed", "that sslrootcert=FILE"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct advice_link link = {.store = cases[i][0], .tls = true};
        assert_non_null(step(&link, cases[i][1]));
        assert_non_null(strstr(step(&link, cases[i][1]), cases[i][2]));
    }
}

static void a_name_alone_is_no_sign_that_it_is_missing(void **state)
{
    (void)state;
    const struct advice_link link = {.store = "postgres"};
    static const char *const pairs[][2] = {
        {"database \"app\" does not exist", "createdb"},
        {"role \"joe\" does not exist", "createuser"},
        {"permission denied for database \"app\"", "GRANT CONNECT"},
        {"permission denied for function pg_control_system", "GRANT EXECUTE"},
        {"permission denied for schema public", "GRANT USAGE"},
        {"permission denied for table \"app\"", "check --store"},
        {"too many connections for role \"joe\"", "ALTER ROLE"},
        {"too many connections for database \"app\"", "ALTER DATABASE"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_non_null(strstr(step(&link, pairs[i][0]), pairs[i][1]));
    assert_null(step(&link, "database \"app\" is not currently accepting connections"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_refuses_gets_the_step_that_helps_it),
        cmocka_unit_test(the_scheme_with_tls_is_the_stores_own),
        cmocka_unit_test(tls_is_not_proposed_where_it_is_spoken_or_has_no_scheme),
        cmocka_unit_test(a_server_that_has_answered_has_the_right_port),
        cmocka_unit_test(what_says_the_next_step_itself_gets_no_other),
        cmocka_unit_test(an_answer_is_no_failed_connection),
        cmocka_unit_test(a_store_that_is_full_is_given_room_in_its_own_way),
        cmocka_unit_test(a_server_that_takes_no_more_clients_or_writes_is_mended_in_its_own_way),
        cmocka_unit_test(each_kind_has_its_step),
        cmocka_unit_test(each_trouble_with_certificates_has_a_step_of_its_own),
        cmocka_unit_test(a_name_alone_is_no_sign_that_it_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
