/**
 * Where a Postgres URL leads: the servers to try, one by one, after everything that libpq reads of
 * its own accord (the environment, PGSERVICE, the service file) has been taken in. libpq itself is
 * handed one server at a time, by address: it would look further names up in the way (measured: 2 s
 * at a silent name server).
 */
#ifndef CROWN_POSTGRES_TARGET_H
#define CROWN_POSTGRES_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/** One server. Strings may be NULL: libpq's default. */
struct postgres_target {
    char *host; /* a name, an address, or a UNIX socket's directory */
    char *hostaddr;
    char *port;
};

struct postgres_targets {
    struct postgres_target *items;
    size_t count;
    /* What the user has set, and is therefore left alone. */
    bool has_keepalives, has_user_timeout, has_session_attrs, has_gssencmode;
};

/**
 * Reads a URL.
 * @param url "postgres://…" or "postgresql://…".
 * @param targets filled; for postgres_targets_free.
 * @return 0, or -1 with ERROR_USAGE: libpq's complaint, in one line and without the password.
 */
int postgres_targets_read(const char *url, struct postgres_targets *targets,
                          struct crown_error *err);
void postgres_targets_free(struct postgres_targets *targets);

/** Whether a target's name has to be looked up first. */
bool postgres_target_needs_lookup(const struct postgres_target *target);

/** Fills `err` with libpq's complaint: its first line, passwords blotted out. @return -1. */
int postgres_error(const char *message, enum error_code code, struct crown_error *err);

#endif
