#include "process/will.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* How long a store that takes the will has for it, and for all that was asked of it before. */
#define SENT_PATIENCE_NS NS_PER_S

static void put_away(int *fd)
{
    if (*fd >= 0) /* same (always number swap): -1 is no descriptor, and 0 to 2 are taken */
        (void)close(*fd);
    *fd = -1;
}

/* --- the runtime's */

static int make_paper(struct will *will)
{
    will->fd = memfd_create("crown-will", MFD_CLOEXEC);
    if (will->fd < 0 || ftruncate(will->fd, sizeof(*will->paper)) < 0)
        return -1;
    void *paper = mmap(NULL, sizeof(*will->paper), PROT_READ | PROT_WRITE, MAP_SHARED, will->fd, 0);
    if (paper == MAP_FAILED)
        return -1;
    will->paper = paper;
    return 0;
}

int will_open(struct will *will, struct link *link, struct crown_error *err)
{
    *will = (struct will){.link = link, .id = link_next_will(link), .fd = -1, .socket = -1};
    if (will->id >= WILLS_MOST)
        return error_set(err, ERROR_USAGE, "a runtime has %d last wills at most", WILLS_MOST);
    if (make_paper(will) == 0)
        return 0;
    (void)error_set_errno(err, errno, "make room for a last will");
    put_away(&will->fd); /* same (order): it keeps errno */
    return -1;
}

void will_revoke(struct will *will)
{
    if (will->paper == NULL || will->socket < 0)
        return;
    will->paper->length = 0; /* the supervisor hears of it a moment later, or never */
    will->socket = -1;
    link_will(will->link, will->id, NULL, 0);
}

void will_close(struct will *will)
{
    if (will->paper == NULL)
        return;
    will_revoke(will);
    (void)munmap(will->paper, sizeof(*will->paper)); /* same (order): neither needs the other */
    (void)close(will->fd);
    will->paper = NULL;
}

int will_leave(struct will *will, int socket, const char *message, size_t length,
               struct crown_error *err)
{
    struct will_paper *paper = will->paper;
    const int fds[] = {socket, will->fd};
    if (paper == NULL || length > WILL_MOST)
        return error_set(err, ERROR_USAGE, "a last will of %zu bytes is too long", length);
    paper->length = 0; /* what is there may be for the connection before */
    if (will->socket != socket && link_will(will->link, will->id, fds, 2) < 0)
        return error_set(err, ERROR_SYSTEM, "the supervisor takes no last will");
    will->socket = socket;
    memcpy(paper->message, message, length);
    paper->length = (uint32_t)length;
    return 0;
}

/* --- the supervisor's */

void wills_init(struct wills *wills)
{
    for (unsigned i = 0; i < WILLS_MOST; i++)
        wills->sockets[i] = wills->papers[i] = wills->sent[i] = -1;
    wills->close_ns = TIME_NEVER;
}

unsigned wills_take(struct wills *wills, uint64_t id, const int *fds, unsigned nfds)
{
    if (id >= WILLS_MOST)
        return nfds;
    put_away(&wills->sockets[id]); /* same (order): neither needs the other */
    put_away(&wills->papers[id]);
    if (nfds != 2)
        return nfds;
    wills->sockets[id] = fds[0];
    wills->papers[id] = fds[1];
    return 0;
}

/* @return how long the message is; 0: there is none to be sent. */
static size_t read_paper(int fd, struct will_paper *paper)
{
    if (pread(fd, paper, sizeof(*paper), 0) != (ssize_t)sizeof(*paper) || paper->midway != 0 ||
        paper->length > WILL_MOST)
        return 0;
    return paper->length;
}

void wills_execute(struct wills *wills)
{
    struct will_paper paper;
    for (unsigned i = 0; i < WILLS_MOST; i++) {
        size_t length = read_paper(wills->papers[i], &paper); /* 0 where there is no paper */
        put_away(&wills->papers[i]);
        if (length > 0 && send(wills->sockets[i], paper.message, length,
                               MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length) {
            put_away(&wills->sent[i]);
            wills->sent[i] = wills->sockets[i];
            wills->sockets[i] = -1;
            wills->close_ns = clock_monotonic_ns() + SENT_PATIENCE_NS;
        }
        put_away(&wills->sockets[i]);
    }
}

/* @return whether the store may still have something to say. */
static bool throw_away_answers(int socket)
{
    char answers[4096];
    ssize_t got;
    do
        got = recv(socket, answers, sizeof(answers), MSG_DONTWAIT);
    while (got == (ssize_t)sizeof(answers));
    return got > 0 || (got < 0 && errno == EAGAIN);
}

void wills_close(struct wills *wills)
{
    bool over = clock_monotonic_ns() >= wills->close_ns, waiting = false;
    for (unsigned i = 0; i < WILLS_MOST; i++) {
        if (over || !throw_away_answers(wills->sent[i]))
            put_away(&wills->sent[i]);
        waiting = waiting || wills->sent[i] >= 0; /* same (number swap): 0 to 2 are taken */
    }
    if (!waiting)
        wills->close_ns = TIME_NEVER;
}

void wills_drop(struct wills *wills)
{
    for (unsigned i = 0; i < WILLS_MOST; i++) {
        put_away(&wills->papers[i]);
        put_away(&wills->sockets[i]); /* same (order): none needs another */
        put_away(&wills->sent[i]);
    }
    wills->close_ns = TIME_NEVER;
}

int64_t wills_close_ns(const struct wills *wills)
{
    return wills->close_ns;
}
