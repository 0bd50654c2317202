#include "store.h"

static bool runs(const struct store *store, int64_t now_ns)
{
    return store->held && (store->lock || now_ns < store->ends_ns);
}

static uint64_t higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct store_reply denial(const struct store *store, int64_t now_ns)
{
    struct store_reply reply = {.epoch = store->epoch, .life = store->life, .expires_ns = -1};
    if (now_ns < store->sit_out_ns) {
        reply.amnesia = true;
        reply.expires_ns = store->sit_out_ns - now_ns;
    } else if (runs(store, now_ns) && !store->lock) {
        reply.expires_ns = store->ends_ns - now_ns;
    }
    return reply;
}

static struct store_reply grant(struct store *store, int64_t now_ns)
{
    store->ends_ns = now_ns + store->ttl_ns;
    return (struct store_reply){.granted = true, .epoch = store->epoch, .life = store->life};
}

/* Each claim keeps the lease by which the asker is the next one. */
static struct store_reply queue(struct store *store, const struct store_request *request,
                                int64_t now_ns)
{
    struct store_reply reply = denial(store, now_ns);
    bool there = store->next.there && now_ns < store->next.ends_ns;
    bool own = there && store->next.owner == request->candidate;
    if (!store->queue || reply.amnesia || (there && !own) ||
        (own && request->claim < store->next.claim))
        return reply;
    if (!own)
        store->next.epoch = higher(store->epoch, store->next.epoch) + 1;
    store->next.there = reply.next = true;
    store->next.owner = request->candidate;
    store->next.claim = request->claim;
    store->next.ends_ns = now_ns + store->ttl_ns;
    return reply;
}

bool store_pass_on(struct store *store, int64_t now_ns)
{
    if (!store->next.there || runs(store, now_ns) || now_ns < store->sit_out_ns)
        return false;
    store->next.there = false;
    if (now_ns >= store->next.ends_ns)
        return false;
    store->held = true;
    store->owner = store->next.owner;
    store->claim = store->next.claim;
    store->epoch = store->next.epoch;
    store->ends_ns = store->next.ends_ns;
    store->evict = false;
    return true;
}

struct store_reply store_serve(struct store *store, const struct store_request *request,
                               int64_t now_ns)
{
    bool own = runs(store, now_ns) && store->owner == request->candidate;
    switch (request->verb) {
    case STORE_CLAIM:
        if (now_ns < store->sit_out_ns || (runs(store, now_ns) && !own))
            return queue(store, request, now_ns);
        /* A claim that was overtaken by a later one of the same token must not bring its number
         * back: the release that follows it would then undo the later claim. */
        if (own && request->claim < store->claim && !store->claims_unordered)
            return denial(store, now_ns);
        store->held = true;
        store->owner = request->candidate;
        store->claim = request->claim;
        store->evict = false;
        store->next.there = false; /* its epoch would be lower */
        if (!store->epoch_reused || store->epoch == 0)
            store->epoch = higher(store->epoch, store->next.epoch) + 1;
        return grant(store, now_ns);
    case STORE_REFRESH:
        if (!own)
            return denial(store, now_ns);
        if (store->evict)
            return (struct store_reply){
                .evicted = true, .epoch = store->epoch, .life = store->life};
        return grant(store, now_ns);
    default:
        if (own && (store->release_by_token || store->claim == request->claim))
            store->held = false;
        if (store->next.owner == request->candidate && store->next.claim == request->claim)
            store->next.there = false;
        return (struct store_reply){.epoch = store->epoch, .life = store->life};
    }
}

void store_free_lock(struct store *store, unsigned candidate)
{
    if (store->lock && store->held && store->owner == candidate)
        store->held = false;
}

void store_forget(struct store *store, int64_t sit_out_ns)
{
    store->held = false;
    store->epoch = store->next.epoch = 0;
    store->next.there = false;
    store->life++;
    store->sit_out_ns = sit_out_ns;
}
