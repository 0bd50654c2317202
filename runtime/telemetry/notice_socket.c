#include "telemetry/notice_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"

#define MESSAGE_MOST 4096
#define AT_ONCE 16 /* messages in a turn of the loop */

/* Root may be who a command has become by sudo. */
static bool trusted(const struct notice_socket *notices, const struct msghdr *message)
{
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    struct ucred sender;
    if (part == NULL || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.uid == getuid() || sender.uid == 0 || sender.uid == notices->sender;
}

/* Descriptors that come along find no room and are closed by the kernel: that answers BARRIER=1. */
static bool read_one(struct notice_socket *notices)
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
    ssize_t size = recvmsg(notices->watch.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0)
        return errno == EINTR;
    text[size] = '\0';
    if (trusted(notices, &message))
        notices->heard(notices, text);
    return true;
}

void notice_socket_read(struct notice_socket *notices)
{
    for (int i = 0; i < AT_ONCE && read_one(notices); i++)
        ;
}

static void ready(struct loop_watch *watch, unsigned events)
{
    (void)events;
    notice_socket_read(container_of(watch, struct notice_socket, watch));
}

static int bind_socket(struct notice_socket *notices, int fd, struct crown_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(address);
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address.sun_family)) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return error_set_errno(err, errno, "open a socket for the command's notices");
    size_t length = size - offsetof(struct sockaddr_un, sun_path) - 1;
    (void)snprintf(notices->name, sizeof(notices->name), "@%.*s", (int)length,
                   address.sun_path + 1);
    return 0;
}

int notice_socket_open(struct notice_socket *notices, struct loop *loop, struct crown_error *err)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "make a socket for the command's notices");
    if (bind_socket(notices, fd, err) < 0) {
        (void)close(fd);
        return -1;
    }
    notices->watch.ready = ready;
    loop_watch(loop, &notices->watch, fd, LOOP_READ);
    return 0;
}

void notice_socket_close(struct notice_socket *notices)
{
    int fd = notices->watch.fd;
    loop_unwatch(&notices->watch);
    (void)close(fd); /* nothing is lost by it */
}

bool notice_has(const char *message, const char *line)
{
    size_t length = strlen(line);
    for (const char *at = message; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, line, length) == 0 && (at[length] == '\n' || at[length] == '\0'))
            return true;
    }
    return false;
}
