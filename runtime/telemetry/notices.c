#include "telemetry/notices.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "telemetry/notice_socket.h"
#include "telemetry/notify.h"

#define STATUS_MOST 160 /* bytes */

/* One service manager, and so one command that may speak to it, a process. */
static struct {
    struct loop *loop; /* NULL: not open */
    struct notice_socket socket;
    void (*changed)(void *context);
    void *context;
    char status[STATUS_MOST + 1];
    int64_t answered_ns; /* when the command last answered the watchdog; 0: never */
    bool told;           /* that it does not answer */
} notices;

/* Cuts it where a character begins: half a one would make all of it invalid. */
static void take_status(const char *text)
{
    size_t length = strcspn(text, "\n");
    if (length > STATUS_MOST) {
        length = STATUS_MOST;
        while (length > 0 && ((unsigned char)text[length] & 0xC0u) == 0x80u)
            length--;
    }
    memcpy(notices.status, text, length);
    notices.status[length] = '\0';
    notices.changed(notices.context);
}

void notices_take(const char *message)
{
    if (notices.loop == NULL)
        return;
    for (const char *line = message; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "STATUS=", 7) == 0)
            take_status(line + 7);
    }
    if (notice_has(message, "WATCHDOG=1"))
        notices.answered_ns = clock_coarse_ns();
}

static void heard(struct notice_socket *socket, const char *message)
{
    (void)socket;
    notices_take(message);
}

const char *notices_open(struct loop *loop, void (*changed)(void *context), void *context,
                         struct crown_error *err)
{
    if (notices.loop != NULL)
        return notices.socket.name;
    if (getenv("NOTIFY_SOCKET") == NULL) {
        *err = (struct crown_error){.code = 0};
        return NULL;
    }
    notices.socket.heard = heard;
    notices.socket.sender = getuid();
    if (notice_socket_open(&notices.socket, loop, err) < 0)
        return NULL;
    notices.loop = loop;
    notices.changed = changed;
    notices.context = context;
    return notices.socket.name;
}

void notices_forget(void)
{
    notices.answered_ns = 0;
    notices.told = false;
    if (notices.loop != NULL && notices.status[0] != '\0')
        take_status("");
}

const char *notices_status(void)
{
    return notices.status;
}

bool notices_silent(int64_t now_ns)
{
    int64_t silence_ns = now_ns - notices.answered_ns;
    bool silent = notices.answered_ns > 0 && silence_ns > 2 * notify_watchdog_ns();
    if (silent && !notices.told)
        log_warn("the command has not answered the service manager's watchdog for %lld s: it is "
                 "not answered",
                 (long long)(silence_ns / NS_PER_S));
    notices.told = silent;
    return silent;
}

void notices_close(void)
{
    if (notices.loop == NULL)
        return;
    notice_socket_close(&notices.socket);
    notices.loop = NULL;
}
