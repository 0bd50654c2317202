#include "base/scope.h"

#include <stdlib.h>

#include "base/container.h"

struct scope {
    struct list members;
    struct scope_instants instants;
    int hold_fd;
    bool closed;
    bool busy;  /* members are being told: `empty` has to wait until all have been */
    bool owned; /* the owner has not let go */
    void (*empty)(void *context);
    void *context;
};

struct scope *scope_new(void (*empty)(void *context), void *context)
{
    struct scope *scope = malloc(sizeof(*scope));
    if (scope == NULL)
        return NULL;
    *scope = (struct scope){.instants = SCOPE_NO_INSTANTS,
                            .hold_fd = -1,
                            .owned = true,
                            .empty = empty,
                            .context = context};
    list_init(&scope->members);
    return scope;
}

/* Tells the owner, once, and goes when nobody has it any more. */
static void settle(struct scope *scope)
{
    if (!scope->closed || scope->busy || !list_empty(&scope->members))
        return;
    void (*empty)(void *context) = scope->empty;
    scope->empty = NULL;
    if (!scope->owned)
        free(scope);
    else if (empty != NULL)
        empty(scope->context); /* may have freed it */
}

static struct scope_member *member_of(struct list_node *node)
{
    return container_of(node, struct scope_member, link);
}

static void join(struct scope *scope, struct scope_member *member)
{
    member->scope = scope;
    list_append(&scope->members, &member->link);
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
    struct scope *scope = member->scope;
    if (scope == NULL)
        return;
    list_remove(&member->link);
    member->scope = NULL;
    settle(scope);
}

void scope_move(struct scope_member *member, struct scope *scope)
{
    struct scope *before = member->scope;
    list_remove(&member->link);
    join(scope, member);
    if (scope->closed)
        member->kind->end(member);
    if (before != NULL)
        settle(before);
}

void scope_set_instants(struct scope *scope, const struct scope_instants *instants)
{
    scope->instants = *instants;
    list_each(node, &scope->members)
    {
        struct scope_member *member = member_of(node);
        if (member->kind->set_instants != NULL)
            member->kind->set_instants(member, instants);
    }
}

const struct scope_instants *scope_instants(const struct scope *scope)
{
    return &scope->instants;
}

void scope_set_hold(struct scope *scope, int fd)
{
    scope->hold_fd = fd;
}

int scope_hold(const struct scope *scope)
{
    return scope->hold_fd;
}

void scope_close(struct scope *scope)
{
    struct list told;
    if (scope->closed)
        return;
    scope->closed = true;
    scope->busy = true;
    /* One that ends may take others with it: so each is looked for anew. */
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
    scope->busy = false;
    settle(scope);
}

bool scope_closed(const struct scope *scope)
{
    return scope->closed;
}

void scope_free(struct scope *scope)
{
    if (scope == NULL)
        return;
    scope->empty = NULL;
    scope_close(scope);
    scope->owned = false;
    settle(scope);
}
