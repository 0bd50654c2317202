#include "process/link.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEND_WAIT_MS 1000 /* a full line: its reader is a process that never blocks */

struct link {
    int fd;
    uint64_t last_id;
    uint64_t wills;
    bool prepared;
};

struct link *link_new(int supervisor_fd, struct crown_error *err)
{
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        (void)error_set(err, ERROR_MEMORY, "open the line to the supervisor: out of memory");
        return NULL;
    }
    link->fd = supervisor_fd;
    return link;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    if (link->fd >= 0)
        (void)close(link->fd);
    free(link);
}

int link_fd(const struct link *link)
{
    return link->fd;
}

int link_receive(struct link *link, struct wire_message *message, struct crown_error *err)
{
    return wire_receive(link->fd, message, NULL, NULL, err);
}

/* Sends, waiting a moment where thousands of messages came at once and the line is full. */
static int send_patiently(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                          struct crown_error *err)
{
    for (;;) {
        if (wire_send(fd, message, fds, nfds, err) == 0)
            return 0;
        struct pollfd writable = {.fd = fd, .events = POLLOUT};
        if (errno != EAGAIN || poll(&writable, 1, SEND_WAIT_MS) <= 0)
            return -1;
    }
}

int link_heartbeat(struct link *link, int64_t idle_until_ns, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_HEARTBEAT, .stop_at_ns = idle_until_ns};
    /* Not patiently: a beat that finds the line full can be missed. */
    return wire_send(link->fd, &message, NULL, 0, err);
}

int link_arm(struct link *link, bool armed, int64_t silence_ns, struct crown_error *err)
{
    const struct wire_message message = {.type = armed ? WIRE_ARM : WIRE_DISARM,
                                         .stop_at_ns = silence_ns};
    return send_patiently(link->fd, &message, NULL, 0, err);
}

int link_once(struct link *link, int code, const char *text, struct crown_error *err)
{
    struct wire_message message = {.type = WIRE_ONCE, .status = code};
    (void)snprintf(message.text, sizeof(message.text), "%s", text); /* cut is fine */
    return link->fd >= 0 ? send_patiently(link->fd, &message, NULL, 0, err) : 0;
}

int link_end_keeper(struct link *link, uint64_t id, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_END_KEEPER, .id = id};
    return send_patiently(link->fd, &message, NULL, 0, err);
}

void link_prepare(struct link *link)
{
    const struct wire_message message = {.type = WIRE_PREPARE};
    if (link->prepared || link->fd < 0)
        return;
    link->prepared = true;
    (void)wire_send(link->fd, &message, NULL, 0, NULL); /* lost: then the start takes longer */
}

int link_keep(struct link *link, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_KEEP};
    return link->fd >= 0 ? send_patiently(link->fd, &message, NULL, 0, err) : 0;
}

void link_title(struct link *link, const char *text)
{
    struct wire_message message = {.type = WIRE_TITLE};
    (void)snprintf(message.text, sizeof(message.text), "%s", text); /* cut is fine */
    (void)wire_send(link->fd, &message, NULL, 0, NULL); /* lost is fine too: nobody waits for it */
}

void link_log(struct link *link, enum log_format format, enum log_level level)
{
    const struct wire_message message = {
        .type = WIRE_LOG, .log_format = format, .log_level = level};
    (void)wire_send(link->fd, &message, NULL, 0, NULL); /* lost: then it says it as it did */
}

uint64_t link_next_will(struct link *link)
{
    return link->wills++;
}

int link_will(struct link *link, uint64_t id, const int *fds, unsigned nfds)
{
    const struct wire_message message = {.type = WIRE_WILL, .id = id};
    struct crown_error err;
    return link->fd >= 0 ? send_patiently(link->fd, &message, fds, nfds, &err) : -1;
}

int link_held(struct link *link, const char *text)
{
    struct wire_message message = {.type = WIRE_HELD};
    (void)stpncpy(message.text, text, sizeof(message.text) - 1); /* cut is fine */
    return wire_send(link->fd, &message, NULL, 0, NULL);
}

/* The spec first, then what it names, in the order that child_spec_read counts them. */
static unsigned collect_fds(const struct child_spec *spec, int memfd, int *fds)
{
    unsigned count = 0;
    fds[count++] = memfd;
    for (int stream = 0; stream < 3; stream++)
        if (spec->stdio[stream] == CHILD_STDIO_FD)
            fds[count++] = spec->stdio_fd[stream];
    for (unsigned i = 0; i < spec->hold_count; i++)
        fds[count++] = spec->hold_fd[i];
    return count;
}

int link_start_child(struct link *link, const struct child_spec *spec, struct keeper_link *keeper,
                     struct crown_error *err)
{
    int ends[2];
    int fds[WIRE_MAX_FDS];
    if (link->fd < 0)
        return error_set(err, ERROR_USAGE, "run %s: there is no supervisor here to run it",
                         spec->argv[0]);
    int memfd = child_spec_write(spec, err);
    if (memfd < 0)
        return -1;
    if (wire_pair(ends, err) < 0) {
        (void)close(memfd);
        return -1;
    }
    const struct wire_message message = {
        .type = WIRE_START_KEEPER, .id = ++link->last_id, .holds = spec->hold_count};
    unsigned count = 1 + collect_fds(spec, memfd, fds + 1);
    fds[0] = ends[1];
    link->prepared = false;
    assert(count <= WIRE_MAX_FDS);
    int result = send_patiently(link->fd, &message, fds, count, err);
    (void)close(memfd);
    (void)close(ends[1]);
    keeper->id = message.id;
    keeper->fd = ends[0];
    if (result < 0)
        keeper_link_close(keeper);
    return result;
}

int keeper_link_receive(struct keeper_link *keeper, struct wire_message *message,
                        struct crown_error *err)
{
    return wire_receive(keeper->fd, message, NULL, NULL, err);
}

int keeper_link_set_deadline(struct keeper_link *keeper, int64_t stop_at_ns, int64_t kill_at_ns,
                             int64_t deadline_ns, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_SET_DEADLINE,
                                         .stop_at_ns = stop_at_ns,
                                         .kill_at_ns = kill_at_ns,
                                         .deadline_ns = deadline_ns};
    return send_patiently(keeper->fd, &message, NULL, 0, err);
}

int keeper_link_stop(struct keeper_link *keeper, int64_t kill_at_ns, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_STOP_CHILD, .kill_at_ns = kill_at_ns};
    return send_patiently(keeper->fd, &message, NULL, 0, err);
}

int keeper_link_signal(struct keeper_link *keeper, int signal, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_SIGNAL, .signal = signal};
    return send_patiently(keeper->fd, &message, NULL, 0, err);
}

void keeper_link_close(struct keeper_link *keeper)
{
    if (keeper->fd >= 0)
        (void)close(keeper->fd);
    keeper->fd = -1;
}
