#include "process/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int wire_pair(int ends[2], struct crown_error *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return error_set_errno(err, errno, "make a socket pair");
    return 0;
}

int wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
              struct crown_error *err)
{
    struct wire_message versioned = *message;
    versioned.version = WIRE_VERSION;
    struct iovec part = {.iov_base = &versioned, .iov_len = sizeof(versioned)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
    } control = {0};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (nfds > 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * nfds);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent == (ssize_t)sizeof(versioned))
        return 0;
    int saved = errno;
    if (saved == EPIPE || saved == ECONNRESET)
        (void)error_set(err, ERROR_CLOSED, "send %s: the other process is gone",
                        wire_type_name(message->type));
    else
        (void)error_set_errno(err, saved, "send %s", wire_type_name(message->type));
    errno = saved; /* the caller may wait for room: EAGAIN */
    return -1;
}

static unsigned take_descriptors(struct msghdr *packet, int *fds)
{
    unsigned count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(packet); header != NULL;
         header = CMSG_NXTHDR(packet, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    }
    return count;
}

int wire_receive(int fd, struct wire_message *message, int *fds, unsigned *nfds,
                 struct crown_error *err)
{
    struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
    } control;
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds != NULL) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof(control.bytes);
    }
    ssize_t got;
    /* ECONNRESET: the other side ended with messages unread. That is said once, ahead of what it
     * wrote: its last words are still to come. */
    do
        got = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got < 0)
        return error_set_errno(err, errno, "receive from another process");
    if (got == 0)
        return error_set(err, ERROR_CLOSED, "the other process is gone");
    unsigned count = fds != NULL ? take_descriptors(&packet, fds) : 0;
    bool whole = (packet.msg_flags & MSG_CTRUNC) == 0; /* else there was no room for all of them */
    if (nfds != NULL)
        *nfds = whole ? count : 0;
    message->text[WIRE_TEXT - 1] = '\0';
    bool ours = (size_t)got == sizeof(*message) && !(packet.msg_flags & MSG_TRUNC) &&
                message->version == WIRE_VERSION && message->type < WIRE_TYPE_COUNT;
    for (unsigned i = 0; i < count && !(ours && whole); i++)
        (void)close(fds[i]); /* nobody is going to use them */
    if (ours)
        return 1;
    return error_set(err, ERROR_PROTOCOL, "a message of %zd bytes that is none of ours", got);
}

const char *wire_type_name(enum wire_type type)
{
#define WIRE_NAME(name, text) text,
    static const char *const names[] = {WIRE_MESSAGES(WIRE_NAME)};
    return type < WIRE_TYPE_COUNT ? names[type] : "unknown";
}
