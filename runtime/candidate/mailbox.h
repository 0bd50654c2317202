/**
 * Messages that wait for handle_info: a ring of Lua values.
 */
#ifndef CROWN_CANDIDATE_MAILBOX_H
#define CROWN_CANDIDATE_MAILBOX_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#define MAILBOX_MAX 1024 /* more means that nobody handles them */

/** Embed it; all zero is an empty one. */
struct mailbox {
    int *references; /* a ring, which grows as it is needed */
    uint16_t first, count, room;
    uint16_t untold; /* of the last ones the core has not heard yet: starts.h */
};

/** Takes the value on top of L (popped). @return false when the mailbox is full. */
bool mailbox_put(struct mailbox *mailbox, lua_State *L);

/** Pushes the oldest message, or nil. */
void mailbox_take(struct mailbox *mailbox, lua_State *L);

/** Lets go of all messages, and of the memory. */
void mailbox_clear(struct mailbox *mailbox, lua_State *L);

#endif
