#include "base/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define UNIX_PREFIX "unix:"

bool address_is_number(const char *host)
{
    struct in6_addr ignored;
    return inet_pton(AF_INET, host, &ignored) == 1 || inet_pton(AF_INET6, host, &ignored) == 1;
}

static int parse_path(struct address *address, const char *path)
{
    struct sockaddr_un *local = (struct sockaddr_un *)(void *)&address->storage;
    if (strlen(path) >= sizeof(local->sun_path))
        return -1;
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, strlen(path) + 1);
    address->size = sizeof(*local);
    return 0;
}

int address_parse(struct address *address, const char *host, unsigned port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&address->storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&address->storage;
    *address = (struct address){0};
    if (strncmp(host, UNIX_PREFIX, sizeof(UNIX_PREFIX) - 1) == 0)
        return parse_path(address, host + sizeof(UNIX_PREFIX) - 1);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        address->size = sizeof(*v4);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        address->size = sizeof(*v6);
        return 0;
    }
    return -1;
}

const struct sockaddr *address_plain(const struct address *address)
{
    return (const struct sockaddr *)&address->storage;
}

struct sockaddr *address_fill(struct address *address)
{
    return (struct sockaddr *)&address->storage;
}

unsigned address_port(const struct address *address)
{
    if (address->storage.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&address->storage)->sin_port);
    if (address->storage.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address->storage)->sin6_port);
    return 0;
}

void address_text(const struct address *address, char *text, size_t size)
{
    const void *storage = &address->storage;
    char host[INET6_ADDRSTRLEN] = "";
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = storage;
        (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)); /* there is room */
        (void)snprintf(text, size, "%s:%u", host, address_port(address));
    } else if (address->storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = storage;
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        (void)snprintf(text, size, "[%s]:%u", host, address_port(address));
    } else {
        /* A socket without a name has no path: its size tells. */
        const struct sockaddr_un *local = storage;
        bool named = address->size > offsetof(struct sockaddr_un, sun_path);
        (void)snprintf(text, size, UNIX_PREFIX "%.108s", named ? local->sun_path : "");
    }
}

void address_text_host(const struct address *address, char *text, size_t size)
{
    if (getnameinfo(address_plain(address), address->size, text, (socklen_t)size, NULL, 0,
                    NI_NUMERICHOST) != 0 ||
        address->storage.ss_family == AF_UNIX)
        text[0] = '\0';
}
