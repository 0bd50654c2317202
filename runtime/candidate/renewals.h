/**
 * A register's session, as refreshes of its terms see it: one renewal counts for all of them, and
 * none of them asks anybody. Lua tells when a renewal was answered that gives each of the session's
 * terms its full TTL. Whatever is not so, as a term that may have been lost, is left to the
 * oracle's own `refresh`.
 */
#ifndef CROWN_CANDIDATE_RENEWALS_H
#define CROWN_CANDIDATE_RENEWALS_H

#include "base/list.h"
#include "base/random.h"
#include "candidate/refresher.h"

struct renewals_times {
    int64_t ttl_ns, delay_ns;
    int64_t fresh_ns;     /* so long after its sending a renewal is one that a refresh may take */
    int64_t apart_ns;     /* all refreshes of a round come within that time */
    int64_t patience_ns;  /* a renewal that takes longer is asked for again */
    int64_t clock_set_ns; /* where the wall clock has jumped so far the host may have stood still */
};

/** Zero-initialised but for what renewals_init sets; its memory does not move. */
struct renewals {
    struct refresher refresher;
    struct renewals_times times;
    struct loop *loop;
    struct random random;
    /** Begins a renewal, which ends with one of the calls below. @return whether it has begun. */
    bool (*renew)(struct renewals *renewals);
    struct list waiting; /* refreshes */
    int64_t asked_ns;    /* when `renew` was called; TIME_NEVER: it was answered */
    int64_t sent_ns;     /* when the renewal was sent that counts; TIME_NEVER: none does */
    int64_t offset_ns;   /* clock_wall_offset_ns then */
    int64_t first_ns;    /* when the first round of refreshes began */
    bool failed;         /* the last one, with `failure` and `code` */
    struct crown_error failure;
    const char *code;
};

void renewals_init(struct renewals *renewals, struct loop *loop, const struct renewals_times *times,
                   bool (*renew)(struct renewals *renewals));
/** @return the renewals that a refresher is; NULL where it is another kind. */
struct renewals *renewals_of(struct refresher *refresher);

/** A renewal was answered, and each term that stands has its TTL from the sending on. */
void renewals_count(struct renewals *renewals, int64_t sent_ns, int64_t offset_ns,
                    int64_t first_ns);
/** No renewal counts until the next call: the oracle is asked. */
void renewals_forget(struct renewals *renewals);
/** A renewal failed. @param answers whether the store has answered that. */
void renewals_fail(struct renewals *renewals, const char *message, bool answers);

#endif
