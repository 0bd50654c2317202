#include "postgres/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/figure.h"
#include "loop/helper.h"
#include "net/resolve.h"
#include "postgres/attempt.h"
#include "postgres/explain.h"
#include "postgres/target.h"
#include "postgres/turns.h"

struct postgres_connect {
    struct loop *loop;
    char *url;
    struct postgres_turn turn;
    int64_t timeout_ns, until_ns, silence_ns;
    postgres_connected *done;
    void *context;
    struct postgres_targets targets;
    size_t target, failures;
    struct resolution *resolution;
    char addresses[RESOLVE_MAX][ADDRESS_TEXT_SIZE];
    size_t address_count, address;
    struct helper *reading;           /* of the URL */
    struct postgres_attempt *attempt; /* the one under way */
    struct postgres_partings *partings;
    char place[POSTGRES_PLACE_SIZE]; /* that of the attempt */
    size_t addresses_more;           /* that names stood for, besides the first of each */
    struct loop_deadline deadline;
    int64_t share_ns;         /* of the time, for the attempt under way */
    struct crown_error error; /* of the last try */
};

static void try_target(struct postgres_connect *c);

static void drop_attempt(struct postgres_connect *c)
{
    loop_at_cancel(c->loop, &c->deadline);
    helper_abandon(c->reading);
    c->reading = NULL;
    postgres_attempt_give_up(c->attempt, c->partings);
    c->attempt = NULL;
    resolution_cancel(c->resolution);
    c->resolution = NULL;
}

static void free_all(struct postgres_connect *c)
{
    drop_attempt(c);
    postgres_turn_leave(&c->turn);
    postgres_targets_free(&c->targets);
    free(c->url);
    free(c);
}

/* Names the last server that was tried; none was where the URL itself is wrong. */
static void explain(const struct postgres_connect *c, struct crown_error *error)
{
    if (c->targets.count == 0)
        return;
    size_t last = c->target < c->targets.count ? c->target : c->targets.count - 1;
    const struct postgres_target *target = &c->targets.items[last];
    postgres_explain(target->host != NULL ? target->host : target->hostaddr, target->port,
                     POSTGRES_SILENT, error);
}

static void finish(struct postgres_connect *c, PGconn *conn)
{
    postgres_connected *done = c->done;
    void *context = c->context;
    struct crown_error error = c->error;
    char place[POSTGRES_PLACE_SIZE];
    if (conn == NULL)
        explain(c, &error);
    size_t length = strlen(error.message);
    if (conn == NULL && c->failures > 1)
        (void)snprintf(error.message + length, sizeof(error.message) - length,
                       " (the last of %zu tries)", c->failures);
    (void)memcpy(place, c->place, sizeof(place));
    free_all(c);
    done(context, conn, place, &error);
}

static void next(struct postgres_connect *c)
{
    drop_attempt(c);
    c->failures++;
    if (++c->address < c->address_count) {
        try_target(c);
        return;
    }
    c->address = c->address_count = 0;
    if (++c->target < c->targets.count)
        try_target(c);
    else
        finish(c, NULL);
}

static void overdue(struct loop_deadline *deadline)
{
    struct postgres_connect *c = container_of(deadline, struct postgres_connect, deadline);
    (void)error_set(&c->error, ERROR_TIMEOUT, "no answer within %s s",
                    figure_about(clock_seconds_from_ns(c->share_ns)).text);
    next(c);
}

/* What is left of the time, in fair shares: a server that is silent leaves the others theirs. */
static void set_deadline(struct postgres_connect *c)
{
    int64_t now = loop_now(c->loop);
    size_t addresses = c->address_count > c->address ? c->address_count - c->address : 1;
    size_t tries = c->targets.count - c->target - 1 + addresses;
    c->share_ns = c->until_ns > now ? (c->until_ns - now) / (int64_t)tries : 0;
    loop_at(c->loop, &c->deadline, clock_add_ns(now, c->share_ns));
}

static void attempted(void *context, PGconn *conn, const struct crown_error *err)
{
    struct postgres_connect *c = context;
    c->attempt = NULL;
    if (conn != NULL) {
        finish(c, conn);
        return;
    }
    c->error = *err;
    next(c);
}

static void start_attempt(struct postgres_connect *c, const char *address)
{
    const struct postgres_attempt_options options = {.url = c->url,
                                                     .targets = &c->targets,
                                                     .target = c->target,
                                                     .address = address,
                                                     .silence_ns = c->silence_ns};
    postgres_attempt_place(&options, c->place);
    postgres_partings_expect(c->partings, c->targets.count + c->addresses_more);
    if (postgres_partings_check(c->partings, c->place, &c->error) == 0) {
        set_deadline(c);
        c->attempt = postgres_attempt(c->loop, &options, attempted, c, &c->error);
    }
    if (c->attempt == NULL)
        next(c);
}

static void looked_up(void *context, const struct address *addresses, size_t count,
                      const struct crown_error *err)
{
    struct postgres_connect *c = context;
    c->resolution = NULL;
    c->address_count = 0;
    for (; c->address_count < count; c->address_count++)
        address_text_host(&addresses[c->address_count], c->addresses[c->address_count],
                          ADDRESS_TEXT_SIZE);
    if (c->address_count == 0) {
        c->error = *err;
        next(c);
        return;
    }
    c->addresses_more += c->address_count - 1;
    start_attempt(c, c->addresses[0]);
}

static void try_target(struct postgres_connect *c)
{
    const struct postgres_target *target = &c->targets.items[c->target];
    if (!postgres_target_needs_lookup(target) || c->address < c->address_count) {
        start_attempt(c, c->address < c->address_count ? c->addresses[c->address] : NULL);
        return;
    }
    set_deadline(c);
    struct resolver *resolver = resolver_get(c->loop, &c->error);
    if (resolver != NULL)
        c->resolution =
            resolve(resolver, target->host, target->port != NULL ? target->port : "5432", looked_up,
                    c, &c->error);
    if (c->resolution == NULL)
        next(c);
}

/* --- reading the URL: the files that it may name can be on a disk that hangs */

struct reading {
    char *url;
    struct postgres_targets targets;
    struct crown_error error;
    int result;
};

static void reading_drop(void *work)
{
    struct reading *reading = work;
    postgres_targets_free(&reading->targets);
    free(reading->url);
    free(reading);
}

static void reading_run(void *work, int given_up)
{
    struct reading *reading = work;
    (void)given_up;
    reading->result = postgres_targets_read(reading->url, &reading->targets, &reading->error);
}

static void reading_done(void *context, void *work)
{
    struct postgres_connect *c = context;
    struct reading *reading = work;
    int result = reading->result;
    c->reading = NULL;
    c->error = reading->error;
    c->targets = reading->targets;
    reading->targets = (struct postgres_targets){0};
    reading_drop(reading);
    if (result < 0)
        finish(c, NULL);
    else
        try_target(c);
}

static int start_reading(struct postgres_connect *c, struct crown_error *err)
{
    static const struct helper_kind kind = {"postgres", reading_run, reading_done, reading_drop,
                                            true};
    struct reading *reading = calloc(1, sizeof(*reading));
    if (reading == NULL || (reading->url = strdup(c->url)) == NULL) {
        free(reading);
        return error_set(err, ERROR_MEMORY, "postgres: out of memory");
    }
    c->reading = helper_start(c->loop, &kind, "the files that a URL may name", reading, c, err);
    if (c->reading == NULL) {
        reading_drop(reading);
        return -1;
    }
    c->share_ns = c->until_ns - loop_now(c->loop);
    loop_at(c->loop, &c->deadline, c->until_ns);
    return 0;
}

static int start(struct postgres_connect *c, struct crown_error *err)
{
    c->until_ns = clock_add_ns(loop_now(c->loop), c->timeout_ns);
    return start_reading(c, err);
}

static void start_in_turn(struct postgres_turn *turn)
{
    struct postgres_connect *c = container_of(turn, struct postgres_connect, turn);
    if (start(c, &c->error) < 0)
        finish(c, NULL);
}

struct postgres_connect *postgres_connect(struct loop *loop, const char *url, int64_t timeout_ns,
                                          int64_t silence_ns, struct postgres_partings *partings,
                                          postgres_connected *done, void *context,
                                          struct crown_error *err)
{
    struct postgres_connect *c = calloc(1, sizeof(*c));
    if (c == NULL || (c->url = strdup(url)) == NULL) {
        free(c);
        (void)error_set(err, ERROR_MEMORY, "postgres: out of memory");
        return NULL;
    }
    c->loop = loop;
    c->timeout_ns = timeout_ns;
    c->silence_ns = silence_ns;
    c->partings = partings;
    c->done = done;
    c->context = context;
    c->deadline.fire = overdue;
    c->turn.begin = start_in_turn;
    int turn = postgres_turn_take(&c->turn, loop, c->url, silence_ns, err);
    if (turn < 0 || (turn > 0 && start(c, err) < 0)) {
        free_all(c);
        return NULL;
    }
    return c;
}

const char *postgres_connect_step(const struct postgres_connect *connect)
{
    return connect->resolution != NULL ? "resolving" : "connecting";
}

void postgres_connect_cancel(struct postgres_connect *connect)
{
    if (connect != NULL)
        free_all(connect);
}
