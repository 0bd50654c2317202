/* The way to the store and back: requests and replies that are late, lost and repeated. */
#include "cluster.h"

#define NOBODYS_ATTEMPT 0 /* the answer finds nobody who waits for it */

static void ask(struct world *world, unsigned who, enum store_verb verb, uint32_t attempt,
                int64_t at_ns)
{
    struct happening *happening = plan(world, at_ns, REQUEST, who);
    happening->request = (struct store_request){verb, who, world->candidates[who].claim};
    happening->serial = attempt;
}

/* What held back a claim and its release delivers both, in order, when they have long been answered
 * by another way. */
static void deliver_late(struct world *world, unsigned who)
{
    int64_t at_ns = world->now + below(world, 2 * world->store.ttl_ns);
    ask(world, who, STORE_CLAIM, NOBODYS_ATTEMPT, at_ns);
    ask(world, who, STORE_RELEASE, NOBODYS_ATTEMPT, at_ns + below(world, 200 * NS_PER_MS));
}

void link_forget(struct candidate *candidate)
{
    candidate->next_claim = candidate->word.claim = 0;
}

/* Who heard that the one before it has gone leads by what it knew, and has that confirmed soon. */
static bool inherit(struct world *world, unsigned who, uint32_t attempt)
{
    struct candidate *candidate = &world->candidates[who];
    int64_t past_ns = local_now(world, candidate) - candidate->next_since_ns;
    bool usable = candidate->word.claim != 0 && candidate->word.claim == candidate->next_claim &&
                  candidate->next_claim == candidate->claim &&
                  past_ns <= world->store.ttl_ns * 3 / 10;
    link_forget(candidate);
    if (!usable)
        return false;
    struct happening *answer = plan(world, world->now, REPLY, who);
    answer->incarnation = candidate->incarnation;
    answer->serial = attempt;
    answer->request = (struct store_request){STORE_CLAIM, who, candidate->claim};
    answer->reply = (struct store_reply){.granted = true,
                                         .epoch = candidate->word.epoch,
                                         .life = candidate->word.life,
                                         .past_ns = past_ns};
    feed_later(world, who, 10 * NS_PER_MS, (struct election_event){.type = ELECTION_EVENT_MESSAGE});
    return true;
}

void link_send(struct world *world, unsigned who, enum store_verb verb, uint32_t attempt)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->attempt = attempt;
    candidate->verb = verb;
    candidate->sent_ns = local_now(world, candidate);
    if (verb == STORE_CLAIM && inherit(world, who, attempt))
        return;
    if (verb == STORE_CLAIM)
        candidate->claim = ++world->claims;
    if (verb == STORE_RELEASE)
        link_forget(candidate);
    unsigned copies = chance(world, 20) ? 0 : chance(world, 10) ? 2 : 1;
    while (copies-- > 0)
        ask(world, who, verb, attempt, world->now + any_delay(world, who, 3 * NS_PER_MS));
    if (verb == STORE_RELEASE && chance(world, 50))
        deliver_late(world, who);
}

void link_watch(struct world *world)
{
    if (store_pass_on(&world->store, world->now)) {
        struct candidate *heir = &world->candidates[world->store.owner];
        heir->word.claim = world->store.claim;
        heir->word.epoch = world->store.epoch;
        heir->word.life = world->store.life;
        (void)plan(world, world->store.ends_ns + NS_PER_US, WATCH, world->store.owner);
    }
    if (world->config.monitor_leader)
        return; /* they look by themselves */
    for (unsigned i = 0; i < world->count; i++)
        feed_later(world, i, below(world, 50 * NS_PER_MS),
                   (struct election_event){.type = ELECTION_EVENT_MESSAGE});
}

void link_serve(struct world *world, const struct happening *happening)
{
    unsigned who = happening->candidate;
    const struct candidate *candidate = &world->candidates[who];
    /* A lock belongs to a session; a call that was given up has closed it, and the server knows. */
    if (world->store.lock && happening->request.verb == STORE_CLAIM &&
        (candidate->incarnation != happening->incarnation ||
         candidate->attempt != happening->serial))
        return;
    bool held = world->store.held;
    struct store_reply reply = store_serve(&world->store, &happening->request, world->now);
    if (held && !world->store.held)
        link_watch(world);
    if (reply.granted && !world->store.lock)
        (void)plan(world, world->store.ends_ns + NS_PER_US, WATCH, who);
    if (chance(world, 20))
        return; /* the answer is lost */
    struct happening *answer =
        plan(world, world->now + any_delay(world, who, 3 * NS_PER_MS), REPLY, who);
    answer->incarnation = happening->incarnation;
    answer->serial = happening->serial;
    answer->request = happening->request;
    answer->reply = reply;
    answer->unknown = chance(world, 20);
}

/* Where only the client can tell that the store forgot, its first look at the new one says so. */
static struct store_reply trusted(struct world *world, unsigned who, struct store_reply reply)
{
    struct candidate *candidate = &world->candidates[who];
    bool other = reply.life != candidate->known_life;
    candidate->known_life = reply.life;
    if (world->memory != MEMORY_CLIENT || !other)
        return reply;
    return (struct store_reply){
        .amnesia = true, .expires_ns = world->store.ttl_ns, .life = reply.life};
}

static struct election_event read_reply(const struct world *world, const struct store_reply *reply)
{
    struct election_event event = {.type = ELECTION_EVENT_DENIED};
    if (reply->granted) {
        event.type = ELECTION_EVENT_GRANTED;
        event.grant.epoch = reply->epoch;
        event.grant.past_ns = world->mutation == MUTATE_PAST_FORGOTTEN ? 0 : reply->past_ns;
        event.grant.cool_down_ns = world->store.cool_down_ns;
        event.grant.ttl_ns = world->store.lock ? 0 : world->store.ttl_ns;
        event.grant.refresh_ns = world->store.lock ? TIME_NEVER : world->store.ttl_ns / 3;
    } else if (reply->evicted) {
        event.type = ELECTION_EVENT_EVICTED;
    } else {
        event.denial.expires_ns = reply->expires_ns;
        event.denial.epoch = reply->epoch;
        event.denial.amnesia = reply->amnesia;
    }
    return event;
}

void link_deliver(struct world *world, const struct happening *happening)
{
    unsigned who = happening->candidate;
    struct candidate *candidate = &world->candidates[who];
    struct election_event event = {.type = ELECTION_EVENT_UNKNOWN};
    if (candidate->attempt != happening->serial)
        return; /* the call was dropped, or answered already: nobody reads this */
    if (happening->request.verb == STORE_RELEASE) {
        event.type = ELECTION_EVENT_RELEASED;
    } else if (!happening->unknown) {
        /* Who does not wait does not look at what it is, either. */
        bool looks = happening->serial != NOBODYS_ATTEMPT;
        struct store_reply reply = looks ? trusted(world, who, happening->reply) : happening->reply;
        event = read_reply(world, &reply);
        if (looks && happening->request.verb == STORE_CLAIM) {
            candidate->next_claim = reply.next ? candidate->claim : 0;
            candidate->next_since_ns = candidate->sent_ns;
        }
        if (reply.granted && looks)
            candidate->term_life = reply.life;
    }
    event.attempt = (uint32_t)happening->serial;
    feed(world, who, event);
}
