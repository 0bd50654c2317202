#include "candidate/mailbox.h"

#include <lauxlib.h>
#include <stdlib.h>

/* Room for one more: the ring grows as it is needed, since ten thousand of the largest would be 40
 * MB.
 * @return how many fit, or 0. */
static unsigned make_room(struct mailbox *mailbox)
{
    if (mailbox->count < mailbox->room)
        return mailbox->room;
    const unsigned before = mailbox->room;
    unsigned room = before > 0 ? before * 2 : 4;
    int *ring = room <= MAILBOX_MAX ? calloc(room, sizeof(*ring)) : NULL;
    if (ring == NULL)
        return 0;
    for (unsigned i = 0; before > 0 && i < mailbox->count; i++)
        ring[i] = mailbox->references[(mailbox->first + i) % before];
    free(mailbox->references);
    mailbox->references = ring;
    mailbox->first = 0;
    mailbox->room = (uint16_t)room;
    return room;
}

bool mailbox_put(struct mailbox *mailbox, lua_State *L)
{
    unsigned room = make_room(mailbox);
    if (room == 0) {
        lua_pop(L, 1);
        return false;
    }
    unsigned last = (mailbox->first + mailbox->count) % room;
    mailbox->references[last] = luaL_ref(L, LUA_REGISTRYINDEX);
    mailbox->count++;
    return true;
}

void mailbox_take(struct mailbox *mailbox, lua_State *L)
{
    if (mailbox->count == 0) {
        lua_pushnil(L);
        return;
    }
    int reference = mailbox->references[mailbox->first];
    mailbox->first = (uint16_t)((mailbox->first + 1) % mailbox->room);
    mailbox->count--;
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    luaL_unref(L, LUA_REGISTRYINDEX, reference);
}

void mailbox_clear(struct mailbox *mailbox, lua_State *L)
{
    while (mailbox->count > 0) {
        mailbox_take(mailbox, L);
        lua_pop(L, 1);
    }
    free(mailbox->references);
    *mailbox = (struct mailbox){.references = NULL};
}
