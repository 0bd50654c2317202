#include "base/scope.h"

#include <assert.h>
#include <stdlib.h>

#include "base/container.h"

/* One for each election: so it is packed. */
struct scope {
    struct list members;
    struct scope_instants instants;
    const struct scope_owner *owner;
    void *context;
    unsigned here; /* how many members live in this process */
    struct scope_hold hold;
    uint16_t busy; /* callbacks under way: until they are over it neither ends nor goes */
    bool owns_processes;
    bool closed;
    bool owned; /* the owner has not let go */
};

static const struct scope_owner nobody = {.quiet = NULL, .empty = NULL};

struct scope *scope_new(const struct scope_owner *owner, void *context)
{
    struct scope *scope = malloc(sizeof(*scope));
    if (scope == NULL)
        return NULL;
    *scope = (struct scope){.instants = SCOPE_NO_INSTANTS,
                            .hold = SCOPE_NO_HOLD,
                            .owned = true,
                            .owner = owner != NULL ? owner : &nobody,
                            .owns_processes = owner != NULL && owner->owns_processes,
                            .context = context};
    list_init(&scope->members);
    return scope;
}

/* Tells the owner, once, and goes when nobody has it any more. */
static void settle(struct scope *scope)
{
    if (!scope->closed || scope->busy > 0 || !list_empty(&scope->members))
        return;
    const struct scope_owner *owner = scope->owner;
    scope->owner = &nobody;
    if (!scope->owned)
        free(scope);
    else if (owner->empty != NULL)
        owner->empty(scope->context); /* may have freed it */
}

static struct scope_member *member_of(struct list_node *node)
{
    return container_of(node, struct scope_member, link);
}

static bool is_here(const struct scope_member *member)
{
    return member->kind->set_instants == NULL;
}

static void join(struct scope *scope, struct scope_member *member)
{
    member->scope = scope;
    scope->here += is_here(member);
    list_append(&scope->members, &member->link);
}

static void part(struct scope_member *member)
{
    struct scope *scope = member->scope;
    member->scope = NULL;
    list_remove(&member->link);
    if (is_here(member) && --scope->here == 0 && scope->owner->quiet != NULL) {
        scope->busy++;
        scope->owner->quiet(scope->context);
        scope->busy--;
    }
    settle(scope);
}

bool scope_enter(struct scope *scope, struct scope_member *member, const struct scope_kind *kind)
{
    if (scope->closed)
        return false;
    member->kind = kind;
    join(scope, member);
    return true;
}

void scope_leave(struct scope_member *member)
{
    if (member->scope != NULL)
        part(member);
}

void scope_move(struct scope_member *member, struct scope *scope)
{
    part(member);
    join(scope, member);
    if (scope->closed)
        member->kind->end(member);
}

void scope_set_instants(struct scope *scope, const struct scope_instants *instants)
{
    scope->instants = *instants;
    list_each(node, &scope->members)
    {
        struct scope_member *member = member_of(node);
        if (!is_here(member))
            member->kind->set_instants(member, instants);
    }
}

const struct scope_instants *scope_instants(const struct scope *scope)
{
    return &scope->instants;
}

void scope_set_hold(struct scope *scope, const struct scope_hold *hold)
{
    scope->hold = *hold;
}

const struct scope_hold *scope_hold(const struct scope *scope)
{
    return &scope->hold;
}

void scope_close(struct scope *scope)
{
    struct list told;
    if (scope->closed)
        return;
    scope->closed = true;
    scope->busy++;
    /* One that ends may take others with it: so the next is looked for anew. */
    list_init(&told);
    while (!list_empty(&scope->members)) {
        struct scope_member *member = member_of(list_first(&scope->members));
        list_remove(&member->link);
        list_append(&told, &member->link);
        member->kind->end(member);
    }
    while (!list_empty(&told)) {
        struct list_node *node = list_first(&told);
        list_remove(node);
        list_append(&scope->members, node);
    }
    scope->busy--;
    settle(scope);
}

bool scope_closed(const struct scope *scope)
{
    return scope->closed;
}

bool scope_is_empty(const struct scope *scope)
{
    return list_empty(&scope->members);
}

bool scope_owns_processes(const struct scope *scope)
{
    return scope->owns_processes;
}

bool scope_runs_here(const struct scope *scope)
{
    return scope->here > 0;
}

void scope_free(struct scope *scope)
{
    if (scope == NULL)
        return;
    assert(scope->owned);
    scope->owner = &nobody;
    scope_close(scope);
    scope->owned = false;
    settle(scope);
}
