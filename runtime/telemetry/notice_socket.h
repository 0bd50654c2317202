/**
 * A socket by which a command tells us what it would tell a service manager, by sd_notify(3). The
 * kernel chooses its name in the abstract namespace: nothing is left behind. Only this user, root,
 * and the command's own user may send to it.
 */
#ifndef CROWN_TELEMETRY_NOTICE_SOCKET_H
#define CROWN_TELEMETRY_NOTICE_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/error.h"
#include "loop/loop.h"

struct notice_socket {
    void (*heard)(struct notice_socket *socket, const char *message); /* lines of NAME=VALUE */
    struct loop_watch watch;
    uid_t sender;                                              /* the command's user */
    char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* as NOTIFY_SOCKET has it */
};

/** Opens it; `heard` and `sender` are set before. @return 0, or -1 with `err`. */
int notice_socket_open(struct notice_socket *socket, struct loop *loop, struct crown_error *err);

/** Reads what waits there now. */
void notice_socket_read(struct notice_socket *socket);

void notice_socket_close(struct notice_socket *socket);

/** @return whether a message has this line. */
bool notice_has(const char *message, const char *line);

#endif
