/**
 * A client of one Postgres URL: one connection, made when it is needed, made anew when it breaks,
 * with backoff and jitter; it says so once, not at every try.
 */
#ifndef CROWN_POSTGRES_CLIENT_H
#define CROWN_POSTGRES_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "postgres/request.h"

struct postgres_client;

/** What a client tells; from the loop, never from within a call into the client. */
struct postgres_client_events {
    /** Connected (err NULL), lost, or not to be had; a state is told once. `where` names the
     * server. */
    void (*state)(void *context, bool connected, const char *where, const struct crown_error *err);
    /** A notification; with a NULL payload: a new connection listens, something may have been
     * missed. */
    void (*notified)(void *context, const char *channel, const char *payload);
    /** Only with `setup`: there is a connection; nothing but requests that name its generation goes
     * out on it before postgres_client_admit. */
    void (*connected)(void *context, uint64_t generation);
    /** The connection that was `generation` is gone. */
    void (*closed)(void *context, uint64_t generation, const struct crown_error *err);
    void *context;
};

struct postgres_client_options {
    const char *url;
    /* Shared by all servers and addresses. A try after a longer pause may take as long as that. */
    int64_t connect_timeout_ns;
    int64_t silence_ns; /* a peer that acknowledges nothing for so long is gone */
    /* For a connection whose end matters (session locks): a statement without an answer fails
     * alone, and a broken connection is made anew only for the next request. */
    bool keep;
    bool setup;   /* each connection is looked at before it is used: see `connected` */
    bool bounded; /* the server ends by itself what is not answered in time: see session.h */
};

/**
 * @return a client, not connected yet; NULL with `err`: ERROR_USAGE for a URL that libpq cannot
 * read.
 */
struct postgres_client *postgres_client_new(struct loop *loop,
                                            const struct postgres_client_options *options,
                                            const struct postgres_client_events *events,
                                            struct crown_error *err);
/** What is under way fails with ERROR_CLOSED. NULL is fine. */
void postgres_client_free(struct postgres_client *client);

/**
 * Ends a connection's setup: it is used from now on, or, with `err`, closed and tried anew later;
 * what waits for it fails with `err`. Ignored when the connection is gone already.
 */
void postgres_client_admit(struct postgres_client *client, uint64_t generation,
                           const struct crown_error *err);

/** Sends a request, now or as soon as there is a connection; its time-out counts from here. */
void postgres_client_send(struct postgres_client *client, struct postgres_request *request);

/** Listens on a channel, on each connection to come too. @return 0, or -1 when memory is out. */
int postgres_client_listen(struct postgres_client *client, const char *channel,
                           struct crown_error *err);
void postgres_client_unlisten(struct postgres_client *client, const char *channel);

/** Closes the connection; the next request makes another. */
void postgres_client_disconnect(struct postgres_client *client);

/** @return a number that is another for each connection; 0 while there is none. */
uint64_t postgres_client_generation(const struct postgres_client *client);
/** @return whether there is a connection, and its setup, if it has one, is done. */
bool postgres_client_admitted(const struct postgres_client *client);
/** @return the server process as the connection's start told it (a pooler tells its own); 0. */
int postgres_client_server_pid(const struct postgres_client *client);
/** @return the socket, the client's own; -1 while there is none. */
int postgres_client_socket(const struct postgres_client *client);

/** @return the socket of a connection that somebody else may send on as well, between messages:
 * none that is encrypted. -1: there is no such. @param midway see postgres_session_show_midway. */
int postgres_client_share_socket(struct postgres_client *client, _Atomic uint32_t *midway);

/** How a client is, to be shown. */
struct postgres_client_condition {
    /* "idle", "resolving", "connecting", "setting up", "open", "proven" or "broken" */
    const char *state;
    int64_t since_ns, heard_ns; /* heard: when something came from a server last; 0: never */
    uint64_t reconnects;
    unsigned connections, limit; /* that servers may see of it now, and at most */
    const char *problem;         /* why there is no connection, or none that proved good; NULL */
    char server[300];            /* that of the connection, else the last one; empty */
};
void postgres_client_condition(const struct postgres_client *client,
                               struct postgres_client_condition *condition);

#endif
