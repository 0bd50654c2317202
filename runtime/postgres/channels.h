/**
 * The channels that a client listens on, on whatever connection it has.
 */
#ifndef CROWN_POSTGRES_CHANNELS_H
#define CROWN_POSTGRES_CHANNELS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/list.h"
#include "postgres/session.h"

struct postgres_channels {
    struct loop *loop;
    struct list list;
    void (*listens)(void *context, const char *name);
    void *context;
};

/**
 * @param listens called with the name of each, once it is listened on: what was said before may
 * have been missed
 */
void postgres_channels_init(struct postgres_channels *channels, struct loop *loop,
                            void (*listens)(void *context, const char *name), void *context);
void postgres_channels_free(struct postgres_channels *channels);
bool postgres_channels_empty(const struct postgres_channels *channels);

/** @return 1 for a new one; 0 where it is there already; -1 with `err`. */
int postgres_channels_add(struct postgres_channels *channels, const char *name,
                          struct crown_error *err);
/** @param session says UNLISTEN; NULL: there is none. */
void postgres_channels_remove(struct postgres_channels *channels, const char *name,
                              struct postgres_session *session);

/**
 * Says LISTEN for one of them, or for all.
 * @param name NULL: all
 */
void postgres_channels_listen(struct postgres_channels *channels, const char *name,
                              struct postgres_session *session);

#endif
