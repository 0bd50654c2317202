/**
 * All children of this runtime: what they share, and what the supervisor says of a keeper that
 * cannot speak for itself any more.
 */
#ifndef CROWN_CHILD_CHILDREN_H
#define CROWN_CHILD_CHILDREN_H

#include <stdbool.h>

#include "base/list.h"
#include "loop/loop.h"
#include "process/link.h"

/** One per runtime. Owns nothing. */
struct children {
    struct loop *loop;
    struct link *link; /* to the supervisor, which forks the keepers */
    struct list list;  /* of children_member */
};

/** What is known here of one of them. Embedded in struct child. */
struct children_member {
    struct list_node node;
    struct keeper_link keeper;
    void (*keeper_failed)(struct children_member *member, const struct wire_message *message);
};

void children_init(struct children *children, struct loop *loop, struct link *link);

/** Hands KEEPER_FAILED to the child whose keeper it names; one that is of no interest any more is
 * passed over. */
void children_keeper_failed(struct children *children, const struct wire_message *message);

#endif
