#include "telemetry/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

void notify_send(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path != NULL ? strlen(path) : 0;
    if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace: unix(7) */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0)
        log_debug("tell the service manager %s: %s", state, path);
    (void)close(fd); /* nothing is lost by it */
}

int64_t notify_watchdog_ns(void)
{
    const char *text = getenv("WATCHDOG_USEC");
    long long microseconds = text != NULL ? strtoll(text, NULL, 10) : 0;
    return microseconds > 0 ? microseconds * NS_PER_US / 2 : 0;
}
