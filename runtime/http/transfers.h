/**
 * libcurl's multi interface on the loop: one set of transfers a loop, with the connections that are
 * kept alive.
 */
#ifndef CROWN_HTTP_TRANSFERS_H
#define CROWN_HTTP_TRANSFERS_H

#include "base/error.h"
#include "base/list.h"
#include "http/curl.h"
#include "http/hosts.h"
#include "http/sockets.h"
#include "loop/loop.h"

struct transfers;

/** One of the set. Embed it; zero-initialise before transfer_join. */
struct transfer {
    struct list_node link;
    struct transfers *transfers; /* NULL: in none */
    CURL *easy;
    /** It is over; from the loop. */
    void (*finished)(struct transfer *transfer, CURLcode result);
    /** The set ends: the transfer is about to be taken out. */
    void (*closing)(struct transfer *transfer);
};

/** The loop's set, made at its first use. @return NULL with `err`. */
struct transfers *transfers_of(struct loop *loop, struct crown_error *err);
struct http_hosts *transfers_hosts(const struct transfers *transfers);
struct http_sockets *transfers_sockets(struct transfers *transfers);

/** Takes a transfer in, with an easy handle of its own, not started yet. @return 0, or -1 when
 * memory is out. */
int transfer_join(struct transfers *transfers, struct transfer *transfer);
/** Starts it, its options set. @return 0, or -1. */
int transfer_start(struct transfer *transfer);
/** Ends what was started; it may be started again. Idempotent. */
void transfer_stop(const struct transfer *transfer);
/** Takes it out, started or not, and frees the easy handle. Idempotent. */
void transfer_leave(struct transfer *transfer);

/** Ends the loop's set, if there is one. */
void transfers_close(struct loop *loop);

#endif
