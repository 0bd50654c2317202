#include "lua/slabs.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/container.h"
#include "base/list.h"

#define CHUNK ((size_t)65536) /* and where each begins is a multiple of it */
#define ARENA ((size_t)16 * CHUNK)
#define STEP 8 /* from one size to the next, as much as LuaJIT's own allocator aligns to */
#define SIZE_MOST 512
#define WARM_MOST 64 /* chunks that are free, and were not given back */

struct block {
    struct block *next;
};

/* Its blocks, all of one size, stand behind it. */
struct chunk {
    struct list_node link; /* among those of its size with room */
    struct block *free;
    char *fresh; /* from here on nothing was handed out yet */
    size_t size;
    unsigned used;
};

struct slabs {
    /* LuaJIT's own: it knows at which addresses a Lua heap can be, and all memory comes from it. */
    lua_State *donor;
    lua_Alloc under;
    void *context;
    struct list with_room[SIZE_MOST / STEP]; /* chunks, by size */
    void **arenas;
    size_t arena_count;
    /* Chunks without a block, with room for all there are; the first ones were given back. */
    struct chunk **spare;
    size_t spare_count, cold;
};

struct slabs *slabs_new(void)
{
    struct slabs *slabs = calloc(1, sizeof(*slabs));
    if (slabs == NULL)
        return NULL;
    slabs->donor = luaL_newstate();
    if (slabs->donor == NULL) {
        free(slabs);
        return NULL;
    }
    slabs->under = lua_getallocf(slabs->donor, &slabs->context);
    for (size_t i = 0; i < SIZE_MOST / STEP; i++)
        list_init(&slabs->with_room[i]);
    return slabs;
}

void slabs_free(struct slabs *slabs)
{
    if (slabs == NULL)
        return;
    for (size_t i = 0; i < slabs->arena_count; i++)
        (void)slabs->under(slabs->context, slabs->arenas[i], ARENA, 0);
    lua_close(slabs->donor);
    free(slabs->arenas);
    free(slabs->spare);
    free(slabs);
}

/* Asked for where no chunk is spare. @return whether one is now. */
static bool add_arena(struct slabs *slabs)
{
    size_t count = slabs->arena_count + 1;
    void **arenas = realloc(slabs->arenas, count * sizeof(*arenas));
    if (arenas == NULL)
        return false;
    slabs->arenas = arenas;
    struct chunk **spare = realloc(slabs->spare, count * (ARENA / CHUNK) * sizeof(struct chunk *));
    if (spare == NULL)
        return false;
    slabs->spare = spare;
    char *arena = slabs->under(slabs->context, NULL, 0, ARENA);
    if (arena == NULL)
        return false;
    slabs->arenas[slabs->arena_count++] = arena;
    char *end = arena + ARENA;
    char *at = arena + (CHUNK - (uintptr_t)arena % CHUNK) % CHUNK;
    for (; (size_t)(end - at) >= CHUNK; at += CHUNK)
        slabs->spare[slabs->spare_count++] = (struct chunk *)(void *)at;
    slabs->cold = slabs->spare_count; /* nothing has touched them */
    return true;
}

static struct chunk *new_chunk(struct slabs *slabs, size_t size)
{
    if (slabs->spare_count == 0 && !add_arena(slabs))
        return NULL;
    struct chunk *chunk = slabs->spare[--slabs->spare_count];
    if (slabs->cold > slabs->spare_count)
        slabs->cold = slabs->spare_count;
    *chunk = (struct chunk){.fresh = (char *)(chunk + 1), .size = size};
    return chunk;
}

static bool has_room(const struct chunk *chunk)
{
    return chunk->free != NULL || chunk->fresh + chunk->size <= (const char *)chunk + CHUNK;
}

static struct list *of_size(struct slabs *slabs, size_t size)
{
    return &slabs->with_room[size / STEP - 1];
}

static void *take(struct slabs *slabs, size_t size)
{
    struct list *with_room = of_size(slabs, size);
    struct list_node *first = list_first(with_room);
    struct chunk *chunk =
        first != NULL ? container_of(first, struct chunk, link) : new_chunk(slabs, size);
    if (chunk == NULL)
        return NULL;
    if (first == NULL)
        list_append(with_room, &chunk->link);
    struct block *block = chunk->free;
    if (block != NULL) {
        chunk->free = block->next;
    } else {
        block = (struct block *)(void *)chunk->fresh;
        chunk->fresh += size;
    }
    chunk->used++;
    if (!has_room(chunk))
        list_remove(&chunk->link);
    return block;
}

static void let_go(struct slabs *slabs, struct chunk *chunk)
{
    list_remove(&chunk->link);
    slabs->spare[slabs->spare_count++] = chunk;
    if (slabs->spare_count - slabs->cold > WARM_MOST)
        slabs_trim(slabs);
}

static void give(struct slabs *slabs, void *old)
{
    struct chunk *chunk = (struct chunk *)((uintptr_t)old & ~(CHUNK - 1));
    struct list *with_room = of_size(slabs, chunk->size);
    struct block *block = old;
    if (!has_room(chunk))
        list_append(with_room, &chunk->link);
    block->next = chunk->free;
    chunk->free = block;
    /* The last one stays: else each block of a size of which there are few would cost a chunk. */
    if (--chunk->used == 0 && list_first(with_room) != list_last(with_room))
        let_go(slabs, chunk);
}

static size_t rounded(size_t size)
{
    return (size + STEP - 1) / STEP * STEP;
}

static void *resize(struct slabs *slabs, void *old, size_t old_size, size_t size)
{
    bool was_small = old_size <= SIZE_MOST, is_small = size <= SIZE_MOST;
    if (was_small && is_small && rounded(old_size) == rounded(size))
        return old;
    if (!was_small && !is_small)
        return slabs->under(slabs->context, old, old_size, size);
    void *block = slabs_allocate(slabs, NULL, 0, size);
    if (block == NULL)
        return NULL;
    memcpy(block, old, old_size < size ? old_size : size);
    (void)slabs_allocate(slabs, old, old_size, 0);
    return block;
}

void *slabs_allocate(void *slabs_of_state, void *old, size_t old_size, size_t size)
{
    struct slabs *slabs = slabs_of_state;
    if (old != NULL && old_size > 0 && size > 0)
        return resize(slabs, old, old_size, size);
    if (size > 0)
        return size <= SIZE_MOST ? take(slabs, rounded(size))
                                 : slabs->under(slabs->context, NULL, 0, size);
    if (old == NULL || old_size == 0)
        return NULL;
    if (old_size > SIZE_MOST)
        return slabs->under(slabs->context, old, old_size, 0);
    give(slabs, old);
    return NULL;
}

void slabs_trim(struct slabs *slabs)
{
    for (; slabs->cold < slabs->spare_count; slabs->cold++)
        (void)madvise(slabs->spare[slabs->cold], CHUNK, MADV_DONTNEED); /* else it stays: no harm */
}
