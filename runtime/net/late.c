#include "net/late.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

#define KEPT 8
#define FRESH_NS (10 * NS_PER_S) /* longer than the pauses between tries */

struct answer {
    char host[256];
    struct address addresses[RESOLVE_MAX];
    size_t count; /* 0: there is none here */
    int64_t came_ns;
};

static struct answer kept[KEPT];

static struct answer *find(const char *host, unsigned port)
{
    for (size_t i = 0; i < KEPT; i++)
        if (kept[i].count > 0 && strcasecmp(kept[i].host, host) == 0 &&
            address_port(&kept[i].addresses[0]) == port)
            return &kept[i];
    return NULL;
}

static struct answer *oldest(void)
{
    struct answer *found = &kept[0];
    for (size_t i = 1; i < KEPT; i++)
        if (kept[i].count == 0 || (found->count > 0 && kept[i].came_ns < found->came_ns))
            found = &kept[i];
    return found;
}

void late_keep(const char *host, const struct address *addresses, size_t count, int64_t now_ns)
{
    struct answer *answer = find(host, address_port(&addresses[0]));
    if (answer == NULL)
        answer = oldest();
    (void)snprintf(answer->host, sizeof(answer->host), "%s", host); /* a name is no longer */
    memcpy(answer->addresses, addresses, count * sizeof(*addresses));
    answer->count = count;
    answer->came_ns = now_ns;
}

size_t late_find(const char *host, unsigned port, struct address addresses[RESOLVE_MAX],
                 int64_t now_ns)
{
    const struct answer *answer = find(host, port);
    if (answer == NULL || now_ns - answer->came_ns > FRESH_NS)
        return 0;
    memcpy(addresses, answer->addresses, answer->count * sizeof(*addresses));
    return answer->count;
}
