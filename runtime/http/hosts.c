#include "http/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "net/resolve.h"

#define FRESH_NS (30 * NS_PER_S)        /* used without asking again */
#define USABLE_NS (60 * NS_PER_S)       /* used, and asked again: libcurl keeps names as long */
#define PATIENCE_NS (1 * NS_PER_S)      /* for an answer, before what was known serves once more */
#define STALE_NS (24 * 3600 * NS_PER_S) /* the most that it does */
#define KNOWN_MAX 64u
#define NAMES_MAX 3u /* of one request: the URL's, and those of two proxies */
/* Nothing connects to it: for a name without an address, so that libcurl does not look itself. */
#define NOWHERE "255.255.255.255"

/* A name, and what is known of it. */
struct host {
    struct list_node link; /* the one used last is the last */
    struct http_hosts *hosts;
    struct list waiting; /* struct wanted */
    struct resolution *resolution;
    struct loop_deadline patience;
    struct address addresses[RESOLVE_MAX];
    size_t count;
    int64_t found_ns; /* when */
    bool blamed;
    struct crown_error error; /* of the last look-up */
    char name[256];
};

struct http_hosts {
    struct loop *loop;
    struct list known;
    size_t count;
};

/* A name that a request needs. */
struct wanted {
    struct list_node link; /* in the host's, while it waits */
    struct http_lookup *lookup;
    char name[256];
    char port[8];
};

struct http_lookup {
    struct http_hosts *hosts;
    struct wanted wanted[NAMES_MAX];
    size_t count, pending;
    bool proxied; /* what is not found may not be needed */
    struct curl_slist *entries;
    struct crown_error error;
    struct loop_job job;
    http_looked_up *done;
    void *context;
};

static int64_t age_ns(const struct host *host)
{
    return host->count > 0 ? loop_now(host->hosts->loop) - host->found_ns : TIME_NEVER;
}

/* "name:port:address,address" */
static void add_entry(struct http_lookup *lookup, const struct wanted *wanted,
                      const struct host *host)
{
    char entry[sizeof(wanted->name) + RESOLVE_MAX * ADDRESS_TEXT_SIZE];
    int at = snprintf(entry, sizeof(entry), "%s:%s:", wanted->name, wanted->port);
    for (size_t i = 0; host != NULL && i < host->count; i++) {
        char text[ADDRESS_TEXT_SIZE];
        address_text_host(&host->addresses[i], text, sizeof(text));
        at += snprintf(entry + at, sizeof(entry) - (size_t)at, "%s%s", i > 0 ? "," : "", text);
    }
    if (host == NULL || host->count == 0)
        (void)snprintf(entry + at, sizeof(entry) - (size_t)at, NOWHERE);
    struct curl_slist *longer = curl.curl_slist_append(lookup->entries, entry);
    if (longer == NULL)
        (void)error_set(&lookup->error, ERROR_MEMORY, "http: out of memory");
    else
        lookup->entries = longer;
}

static void settle(struct wanted *wanted, const struct host *host)
{
    struct http_lookup *lookup = wanted->lookup;
    add_entry(lookup, wanted, host);
    if (host->count == 0 && lookup->error.code == ERROR_NONE)
        lookup->error = host->error;
    if (--lookup->pending == 0)
        loop_post(lookup->hosts->loop, &lookup->job);
}

static void settle_all(struct host *host)
{
    loop_at_cancel(host->hosts->loop, &host->patience);
    while (!list_empty(&host->waiting)) {
        struct list_node *node = list_first(&host->waiting);
        list_remove(node);
        settle(container_of(node, struct wanted, link), host);
    }
}

static void impatient(struct loop_deadline *patience)
{
    settle_all(container_of(patience, struct host, patience));
}

static void resolved_host(void *context, const struct address *addresses, size_t count,
                          const struct crown_error *err)
{
    struct host *host = context;
    host->resolution = NULL;
    if (count > 0) {
        memcpy(host->addresses, addresses, count * sizeof(*addresses));
        host->count = count;
        host->found_ns = loop_now(host->hosts->loop);
        host->blamed = false;
    } else {
        host->error = *err;
        if (age_ns(host) > STALE_NS)
            host->count = 0;
    }
    settle_all(host);
}

static void ask(struct host *host)
{
    if (host->resolution != NULL)
        return;
    struct resolver *resolver = resolver_get(host->hosts->loop, &host->error);
    if (resolver != NULL)
        host->resolution = resolve(resolver, host->name, "1", resolved_host, host, &host->error);
}

static void host_free(struct host *host)
{
    list_remove(&host->link);
    host->hosts->count--;
    resolution_cancel(host->resolution);
    loop_at_cancel(host->hosts->loop, &host->patience);
    free(host);
}

/* The one that was not used for longest makes room. */
static void make_room(struct http_hosts *hosts)
{
    struct list_node *node = list_first(&hosts->known);
    for (; node != NULL && hosts->count >= KNOWN_MAX; node = list_next(&hosts->known, node)) {
        struct host *host = container_of(node, struct host, link);
        if (list_empty(&host->waiting)) {
            host_free(host);
            return;
        }
    }
}

static struct host *host_of(struct http_hosts *hosts, const char *name)
{
    list_each(node, &hosts->known)
    {
        struct host *host = container_of(node, struct host, link);
        if (strcasecmp(host->name, name) == 0) {
            list_remove(&host->link);
            list_append(&hosts->known, &host->link);
            return host;
        }
    }
    make_room(hosts);
    struct host *host = calloc(1, sizeof(*host));
    if (host == NULL)
        return NULL;
    host->hosts = hosts;
    host->patience.fire = impatient;
    list_init(&host->waiting);
    (void)snprintf(host->name, sizeof(host->name), "%s", name);
    list_append(&hosts->known, &host->link);
    hosts->count++;
    return host;
}

static void want(struct wanted *wanted)
{
    struct host *host = host_of(wanted->lookup->hosts, wanted->name);
    if (host == NULL) {
        (void)error_set(&wanted->lookup->error, ERROR_MEMORY, "http: out of memory");
        return;
    }
    int64_t age = age_ns(host);
    if (age > FRESH_NS || host->blamed)
        ask(host);
    wanted->lookup->pending++;
    if ((age <= USABLE_NS && !host->blamed) || host->resolution == NULL) {
        settle(wanted, host);
        return;
    }
    list_append(&host->waiting, &wanted->link);
    if (host->count > 0 && !loop_at_armed(&host->patience))
        loop_at(host->hosts->loop, &host->patience,
                clock_add_ns(loop_now(host->hosts->loop), PATIENCE_NS));
}

/* --- which names */

static void add_name(struct http_lookup *lookup, const char *host, const char *port)
{
    struct wanted *wanted = &lookup->wanted[lookup->count];
    if (lookup->count == NAMES_MAX || host[0] == '[' || address_is_number(host) ||
        strlen(host) >= sizeof(wanted->name))
        return; /* nothing to look up; or libcurl refuses it, too */
    wanted->lookup = lookup;
    (void)snprintf(wanted->name, sizeof(wanted->name), "%s", host);
    size_t length = strlen(wanted->name);
    if (length > 1 && wanted->name[length - 1] == '.')
        wanted->name[length - 1] = '\0'; /* as libcurl does */
    (void)snprintf(wanted->port, sizeof(wanted->port), "%s", port);
    lookup->count++;
}

/* @param fallback the port where none is said; NULL: the scheme's. */
static CURLUcode add_url(struct http_lookup *lookup, const char *url, unsigned flags,
                         const char *fallback)
{
    char *host = NULL, *port = NULL;
    CURLU *parsed = curl.curl_url();
    CURLUcode result = parsed != NULL ? curl.curl_url_set(parsed, CURLUPART_URL, url, flags)
                                      : CURLUE_OUT_OF_MEMORY;
    if (result == CURLUE_OK)
        result = curl.curl_url_get(parsed, CURLUPART_HOST, &host, 0);
    if (result == CURLUE_OK)
        (void)curl.curl_url_get(parsed, CURLUPART_PORT, &port,
                                fallback == NULL ? CURLU_DEFAULT_PORT : 0); /* NULL: none */
    if (result == CURLUE_OK)
        add_name(lookup, host, port != NULL ? port : fallback != NULL ? fallback : "0");
    curl.curl_free(host);
    curl.curl_free(port);
    curl.curl_url_cleanup(parsed);
    return result;
}

/* Other letters are written as "xn--…", as the name servers have them: libcurl would look for its
 * own translation of them. */
static bool is_ascii(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

/* As libcurl picks it, but whether NO_PROXY speaks against it is left to libcurl. */
static const char *proxy_for(const char *url)
{
    bool tls = strncasecmp(url, "https:", 6) == 0;
    const char *const names[] = {tls ? "https_proxy" : "http_proxy",
                                 tls ? "HTTPS_PROXY" : "http_proxy", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *proxy = getenv(names[i]);
        if (proxy != NULL && proxy[0] != '\0')
            return proxy;
    }
    return NULL;
}

static void tell(struct loop_job *job)
{
    struct http_lookup *lookup = container_of(job, struct http_lookup, job);
    const struct crown_error none = {0};
    lookup->done(lookup->context, lookup->proxied ? &none : &lookup->error);
}

struct http_lookup *http_lookup_start(struct http_hosts *hosts, const char *url,
                                      http_looked_up *done, void *context, struct crown_error *err)
{
    struct http_lookup *lookup = calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        (void)error_set(err, ERROR_MEMORY, "http: out of memory");
        return NULL;
    }
    lookup->hosts = hosts;
    lookup->done = done;
    lookup->context = context;
    lookup->job.run = tell;
    CURLUcode result = is_ascii(url) ? add_url(lookup, url, 0, NULL) : CURLUE_BAD_HOSTNAME;
    if (result != CURLUE_OK) {
        (void)error_set(err, ERROR_USAGE, "http: %s", curl.curl_url_strerror(result));
        free(lookup);
        return NULL;
    }
    const char *proxy = proxy_for(url);
    lookup->proxied = proxy != NULL;
    if (proxy != NULL) /* one that libcurl cannot read, it complains about itself */
        (void)add_url(lookup, proxy, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME, "1080");
    lookup->pending = 1; /* so that the last of them is known below */
    for (size_t i = 0; i < lookup->count; i++)
        want(&lookup->wanted[i]);
    if (--lookup->pending == 0)
        loop_post(hosts->loop, &lookup->job);
    return lookup;
}

const struct crown_error *http_lookup_error(const struct http_lookup *lookup)
{
    return &lookup->error;
}

struct curl_slist *http_lookup_entries(struct http_lookup *lookup)
{
    return lookup->entries;
}

void http_lookup_blame(const struct http_lookup *lookup)
{
    for (size_t i = 0; i < lookup->count; i++) {
        struct host *host = host_of(lookup->hosts, lookup->wanted[i].name);
        if (host != NULL)
            host->blamed = true;
    }
}

void http_lookup_free(struct http_lookup *lookup)
{
    if (lookup == NULL)
        return;
    for (size_t i = 0; i < lookup->count; i++)
        list_remove(&lookup->wanted[i].link);
    loop_unpost(lookup->hosts->loop, &lookup->job);
    curl.curl_slist_free_all(lookup->entries);
    free(lookup);
}

struct http_hosts *http_hosts_new(struct loop *loop)
{
    struct http_hosts *hosts = calloc(1, sizeof(*hosts));
    if (hosts == NULL)
        return NULL;
    hosts->loop = loop;
    list_init(&hosts->known);
    return hosts;
}

void http_hosts_free(struct http_hosts *hosts)
{
    struct list_node *node;
    if (hosts == NULL)
        return;
    while ((node = list_first(&hosts->known)) != NULL)
        host_free(container_of(node, struct host, link));
    free(hosts);
}
