#include "telemetry/notices.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "telemetry/notify.h"

#define STATUS_MOST 160 /* bytes */
#define MESSAGE_MOST 4096
#define AT_ONCE 16 /* messages in a turn of the loop */

/* One service manager, and so one command that may speak to it, a process. */
static struct {
    struct loop *loop; /* NULL: not open */
    struct loop_watch watch;
    void (*changed)(void *context);
    void *context;
    char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
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

static void take(const char *message)
{
    for (const char *line = message; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "STATUS=", 7) == 0)
            take_status(line + 7);
        else if (strncmp(line, "WATCHDOG=1", 10) == 0 && (line[10] == '\n' || line[10] == '\0'))
            notices.answered_ns = clock_coarse_ns();
    }
}

/* Root may be who a command has become by sudo. */
static bool trusted(const struct msghdr *message)
{
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    struct ucred sender;
    if (part == NULL || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.uid == getuid() || sender.uid == 0;
}

/* Descriptors that come along find no room and are closed by the kernel: that answers BARRIER=1. */
static bool read_one(int fd)
{
    char text[MESSAGE_MOST + 1];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec into = {.iov_base = text, .iov_len = MESSAGE_MOST};
    struct msghdr message = {.msg_iov = &into,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0)
        return errno == EINTR;
    text[size] = '\0';
    if (trusted(&message))
        take(text);
    return true;
}

static void ready(struct loop_watch *watch, unsigned events)
{
    (void)events;
    for (int i = 0; i < AT_ONCE && read_one(watch->fd); i++)
        ;
}

/* The kernel chooses a name in the abstract namespace: nothing is left behind. */
static int bind_socket(int fd, struct crown_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(address);
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address.sun_family)) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return error_set_errno(err, errno, "open a socket for the command's notices");
    size_t length = size - offsetof(struct sockaddr_un, sun_path) - 1;
    (void)snprintf(notices.name, sizeof(notices.name), "@%.*s", (int)length, address.sun_path + 1);
    return 0;
}

const char *notices_open(struct loop *loop, void (*changed)(void *context), void *context,
                         struct crown_error *err)
{
    if (notices.loop != NULL)
        return notices.name;
    if (getenv("NOTIFY_SOCKET") == NULL) {
        *err = (struct crown_error){.code = 0};
        return NULL;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        (void)error_set_errno(err, errno, "make a socket for the command's notices");
        return NULL;
    }
    if (bind_socket(fd, err) < 0) {
        (void)close(fd);
        return NULL;
    }
    notices.loop = loop;
    notices.changed = changed;
    notices.context = context;
    notices.watch.ready = ready;
    loop_watch(loop, &notices.watch, fd, LOOP_READ);
    return notices.name;
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
    int fd = notices.watch.fd;
    loop_unwatch(&notices.watch);
    (void)close(fd); /* nothing is lost by it */
    notices.loop = NULL;
}
