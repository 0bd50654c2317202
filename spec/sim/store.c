#include "store.h"

static bool runs(const struct store *store, int64_t now_ns)
{
    return store->held && (store->lock || now_ns < store->ends_ns);
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

struct store_reply store_serve(struct store *store, const struct store_request *request,
                               int64_t now_ns)
{
    bool own = runs(store, now_ns) && store->owner == request->candidate;
    switch (request->verb) {
    case STORE_CLAIM:
        if (now_ns < store->sit_out_ns || (runs(store, now_ns) && !own))
            return denial(store, now_ns);
        /* A claim that was overtaken by a later one of the same token must not bring its number
         * back: the release that follows it would then undo the later claim. */
        if (own && request->claim < store->claim && !store->claims_unordered)
            return denial(store, now_ns);
        store->held = true;
        store->owner = request->candidate;
        store->claim = request->claim;
        store->evict = false;
        if (!store->epoch_reused || store->epoch == 0)
            store->epoch++;
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
    store->epoch = 0;
    store->life++;
    store->sit_out_ns = sit_out_ns;
}
