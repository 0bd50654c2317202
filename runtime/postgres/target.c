#include "postgres/target.h"

#include "postgres/libpq.h"
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/plain_file.h"
#include "base/redact.h"

/* A value that no sslmode has: libpq takes in all options, then stops at it, before any network.
 * That is the one way to learn which servers the environment and the service file name. */
#define PROBE "crown-lua-reads-the-options"
#define TARGETS_MAX 32
#define DEFAULT_PORT "5432"

int postgres_error(const char *message, enum error_code code, struct crown_error *err)
{
    size_t length = strcspn(message, "\n");
    (void)error_set(err, code, "%.*s", (int)length, message);
    if (err != NULL)
        redact(err->message);
    return -1;
}

static const char *option(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val != NULL && o->val[0] != '\0' ? o->val : NULL;
    return NULL;
}

/* @return the n-th word of a comma-separated list, to be freed; NULL when it is empty or missing.
 */
static char *word(const char *list, size_t n)
{
    if (list == NULL)
        return NULL;
    for (; n > 0; n--) {
        list = strchr(list, ',');
        if (list == NULL)
            return NULL;
        list++;
    }
    size_t length = strcspn(list, ",");
    return length > 0 ? strndup(list, length) : NULL;
}

static size_t words(const char *list)
{
    size_t count = 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* Where libpq goes for a host of a list that is empty: a directory that was built into it. Asked by
 * a list of nothing but such. @return to be freed. */
static char *default_host(void)
{
    const char *const keywords[] = {"host", "sslmode", NULL};
    const char *const values[] = {",", PROBE, NULL};
    PGconn *conn = libpq.PQconnectStartParams(keywords, values, 0);
    const char *host = conn != NULL ? libpq.PQhost(conn) : NULL;
    char *found = host != NULL && host[0] != '\0' ? strdup(host) : NULL;
    libpq.PQfinish(conn);
    return found;
}

/* Every word of a list is said: what is left out here, libpq takes from the URL, which has the
 * whole list, and looks its names up in the way. */
static int split_one(struct postgres_target *item, const char *host, const char *hostaddr,
                     const char *port, size_t n)
{
    item->host = word(host, n);
    item->hostaddr = word(hostaddr, n);
    item->port = word(port, words(port) > 1 ? n : 0);
    if (item->host == NULL && host != NULL)
        item->host = item->hostaddr != NULL ? strdup(item->hostaddr) : default_host();
    if (item->host == NULL && item->hostaddr == NULL && hostaddr != NULL)
        item->host = default_host();
    if (item->port == NULL && port != NULL)
        item->port = strdup(DEFAULT_PORT);
    bool fine =
        (item->host != NULL || item->hostaddr != NULL || (host == NULL && hostaddr == NULL)) &&
        (item->port != NULL || port == NULL);
    return fine ? 0 : -1;
}

static int split(const char *url, const PQconninfoOption *options, struct postgres_targets *targets)
{
    const char *host = option(options, "host"), *hostaddr = option(options, "hostaddr"),
               *port = option(options, "port");
    size_t count = words(hostaddr != NULL ? hostaddr : host);
    if (count > TARGETS_MAX)
        count = TARGETS_MAX;
    targets->items = calloc(count, sizeof(*targets->items));
    if (targets->items == NULL)
        return -1;
    targets->count = count;
    for (size_t i = 0; i < count; i++)
        if (split_one(&targets->items[i], host, hostaddr, port, i) < 0) {
            postgres_targets_free(targets);
            return -1;
        }
    targets->has_keepalives = option(options, "keepalives_idle") != NULL ||
                              option(options, "keepalives_interval") != NULL ||
                              option(options, "keepalives_count") != NULL;
    targets->has_user_timeout = option(options, "tcp_user_timeout") != NULL &&
                                strcmp(option(options, "tcp_user_timeout"), "0") != 0;
    const char *attrs = option(options, "target_session_attrs");
    targets->has_session_attrs = attrs != NULL && strcmp(attrs, "any") != 0;
    if (strstr(url, "target_session_attrs=any") != NULL) /* the default's word, but said */
        targets->has_session_attrs = true;
    targets->has_gssencmode = option(options, "gssencmode") != NULL &&
                              strcmp(option(options, "gssencmode"), "prefer") != 0;
    return 0;
}

/* What libpq itself looks at only when it has connected, or not at all. */
static int check_values(const PQconninfoOption *options, struct crown_error *err)
{
    static const char *const numbers[] = {"connect_timeout",  "keepalives",
                                          "keepalives_idle",  "keepalives_interval",
                                          "keepalives_count", "tcp_user_timeout"};
    static const char *const attributes[] = {"any",     "read-write", "read-only",
                                             "primary", "standby",    "prefer-standby"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        const char *value = option(options, numbers[i]);
        char *end = NULL;
        if (value != NULL && (strtol(value, &end, 10), *end != '\0'))
            return error_set(err, ERROR_USAGE,
                             "invalid integer value \"%.60s\" for connection option \"%s\"", value,
                             numbers[i]);
    }
    const char *wanted = option(options, "target_session_attrs");
    for (size_t i = 0; wanted != NULL; i++) {
        if (i == sizeof(attributes) / sizeof(*attributes))
            return error_set(err, ERROR_USAGE, "invalid target_session_attrs value: \"%.60s\"",
                             wanted);
        if (strcmp(wanted, attributes[i]) == 0)
            break;
    }
    return 0;
}

static bool is_host(const char *text)
{
    if (text[0] == '/' || text[0] == '@')
        return true; /* a UNIX socket */
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x80 && !isalnum(c) && strchr("._:%-", c) == NULL)
            return false;
    }
    return true;
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    long port = digits > 0 && digits < 6 && text[digits] == '\0' ? strtol(text, NULL, 10) : 0;
    return port > 0 && port < 65536;
}

/* The words are not shown: a part of a password may have been taken for one. */
static int check_places(const struct postgres_targets *targets, struct crown_error *err)
{
    for (size_t i = 0; i < targets->count; i++) {
        const struct postgres_target *item = &targets->items[i];
        if (item->port != NULL && !is_port(item->port))
            return error_set(err, ERROR_USAGE,
                             "the Postgres URL, PGPORT or the service file names no valid port");
        if (item->host != NULL && !is_host(item->host))
            return error_set(err, ERROR_USAGE,
                             "the Postgres URL, PGHOST or the service file names no valid host");
    }
    return 0;
}

/* Has libpq look at its options in the order that it has: up to the one which gets the probe.
 * @return the connection that stopped there, for PQfinish; NULL with `err`. */
static PGconn *probe(const char *url, const char *which, struct crown_error *err)
{
    const char *const keywords[] = {"dbname", which, NULL};
    const char *const values[] = {url, PROBE, NULL};
    PGconn *conn = libpq.PQconnectStartParams(keywords, values, 1);
    if (conn == NULL) {
        (void)error_set(err, ERROR_MEMORY, "postgres: out of memory");
        return NULL;
    }
    if (strstr(libpq.PQerrorMessage(conn), PROBE) != NULL)
        return conn;
    (void)postgres_error(libpq.PQerrorMessage(conn), ERROR_USAGE, err);
    libpq.PQfinish(conn);
    return NULL;
}

/* libpq opens them whatever they are: a pipe would stop us for ever. @return 0, or -1 with `err`.
 */
static int check_service_files(struct crown_error *err)
{
    char path[PATH_MAX];
    const char *named = getenv("PGSERVICEFILE"), *home = getenv("HOME"),
               *system = getenv("PGSYSCONFDIR");
    if (named == NULL)
        (void)snprintf(path, sizeof(path), "%s/.pg_service.conf", home != NULL ? home : "");
    else
        (void)snprintf(path, sizeof(path), "%s", named);
    if (plain_file_check("postgres: the service file", path, err) < 0)
        return -1;
    if (system == NULL) /* libpq's own directory, which is root's */
        return 0;
    (void)snprintf(path, sizeof(path), "%s/pg_service.conf", system);
    return plain_file_check("postgres: the system's service file", path, err);
}

/* @return 0; -1 with `err`, and nothing to free. */
static int read_options(const char *url, PGconn *conn, struct postgres_targets *targets,
                        struct crown_error *err)
{
    PQconninfoOption *options = libpq.PQconninfo(conn);
    if (options == NULL || split(url, options, targets) < 0) {
        libpq.PQconninfoFree(options);
        return error_set(err, ERROR_MEMORY, "postgres: out of memory");
    }
    int result = check_values(options, err) < 0 ? -1 : check_places(targets, err);
    libpq.PQconninfoFree(options);
    if (result < 0)
        postgres_targets_free(targets);
    return result;
}

int postgres_targets_read(const char *url, struct postgres_targets *targets,
                          struct crown_error *err)
{
    *targets = (struct postgres_targets){0};
    if (libpq_load(err) < 0 || check_service_files(err) < 0)
        return -1;
    PGconn *conn = probe(url, "sslmode", err);
    if (conn == NULL)
        return -1;
    int result = read_options(url, conn, targets, err);
    libpq.PQfinish(conn);
    if (result < 0)
        return -1;
    PGconn *rest = probe(url, "target_session_attrs", err);
    if (rest == NULL) {
        postgres_targets_free(targets);
        return -1;
    }
    libpq.PQfinish(rest);
    return 0;
}

void postgres_targets_free(struct postgres_targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        free(targets->items[i].host);
        free(targets->items[i].hostaddr);
        free(targets->items[i].port);
    }
    free(targets->items);
    *targets = (struct postgres_targets){0};
}

bool postgres_target_needs_lookup(const struct postgres_target *target)
{
    if (target->hostaddr != NULL || target->host == NULL)
        return false;
    if (target->host[0] == '/' || target->host[0] == '@')
        return false; /* a UNIX socket */
    return !address_is_number(target->host);
}
