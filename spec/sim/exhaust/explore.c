#include "explore.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WORDS (sizeof(struct model) / sizeof(uint64_t))
#define MAP_WORDS ((WORDS + 63) / 64)
#define TABLE_BITS_FIRST 16
#define CHUNK_SIZE (1u << 24)
#define LOOK_EVERY 4096 /* states between two looks at the clock */

_Static_assert(sizeof(struct model) % sizeof(uint64_t) == 0, "a model is whole words");

static void *need(void *memory)
{
    if (memory == NULL) {
        (void)fputs("exhaust: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* --- words: most of a state's are as in the first state, the others are few --------------------
 */

struct words {
    uint64_t *word;
    uint32_t *slot; /* open addressing: index + 1 */
    uint32_t count, room;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void words_grow(struct words *words)
{
    uint32_t room = words->room == 0 ? 1024 : words->room * 2;
    free(words->slot);
    words->slot = need(calloc((size_t)room * 2, sizeof(*words->slot)));
    words->word = need(realloc(words->word, room * sizeof(*words->word)));
    words->room = room;
    for (uint32_t i = 0; i < words->count; i++) {
        uint32_t at = (uint32_t)mix(words->word[i]) & (room * 2 - 1);
        while (words->slot[at] != 0)
            at = (at + 1) & (room * 2 - 1);
        words->slot[at] = i + 1;
    }
}

static uint32_t word_index(struct words *words, uint64_t word)
{
    if (words->count == words->room)
        words_grow(words);
    uint32_t at = (uint32_t)mix(word) & (words->room * 2 - 1);
    while (words->slot[at] != 0) {
        if (words->word[words->slot[at] - 1] == word)
            return words->slot[at] - 1;
        at = (at + 1) & (words->room * 2 - 1);
    }
    words->word[words->count] = word;
    words->slot[at] = ++words->count;
    return words->count - 1;
}

/* --- the states that wait: packed, in chunks that are freed as they are read --------------------
 */

struct chunk {
    struct chunk *next;
    size_t size, read;
    unsigned char bytes[CHUNK_SIZE];
};

struct queue {
    struct chunk *first, *last;
    struct words words;
    uint64_t first_state[WORDS];
};

static void queue_put(struct queue *queue, const struct model *model)
{
    uint64_t state[WORDS], map[MAP_WORDS] = {0};
    uint16_t different[WORDS];
    unsigned count = 0;
    memcpy(state, model, sizeof(state));
    for (unsigned i = 0; i < WORDS; i++) {
        if (state[i] == queue->first_state[i])
            continue;
        uint32_t index = word_index(&queue->words, state[i]);
        if (index > UINT16_MAX)
            abort(); /* more different words than were ever seen */
        map[i / 64] |= UINT64_C(1) << i % 64;
        different[count++] = (uint16_t)index;
    }
    size_t size = sizeof(map) + count * sizeof(*different);
    if (queue->last == NULL || queue->last->size + size > CHUNK_SIZE) {
        struct chunk *chunk = need(malloc(sizeof(*chunk)));
        chunk->next = NULL;
        chunk->size = chunk->read = 0;
        if (queue->last != NULL)
            queue->last->next = chunk;
        else
            queue->first = chunk;
        queue->last = chunk;
    }
    unsigned char *to = queue->last->bytes + queue->last->size;
    memcpy(to, map, sizeof(map));
    memcpy(to + sizeof(map), different, count * sizeof(*different));
    queue->last->size += size;
}

static bool queue_take(struct queue *queue, struct model *model)
{
    struct chunk *chunk = queue->first;
    if (chunk != NULL && chunk->read == chunk->size && chunk->next != NULL) {
        queue->first = chunk->next;
        free(chunk);
        chunk = queue->first;
    }
    if (chunk == NULL || chunk->read == chunk->size)
        return false;
    uint64_t state[WORDS], map[MAP_WORDS];
    memcpy(state, queue->first_state, sizeof(state));
    memcpy(map, chunk->bytes + chunk->read, sizeof(map));
    chunk->read += sizeof(map);
    for (unsigned i = 0; i < WORDS; i++) {
        uint16_t index;
        if ((map[i / 64] >> i % 64 & 1) == 0)
            continue;
        memcpy(&index, chunk->bytes + chunk->read, sizeof(index));
        chunk->read += sizeof(index);
        state[i] = queue->words.word[index];
    }
    memcpy(model, state, sizeof(state));
    return true;
}

static void queue_free(struct queue *queue)
{
    while (queue->first != NULL) {
        struct chunk *next = queue->first->next;
        free(queue->first);
        queue->first = next;
    }
    free(queue->words.word);
    free(queue->words.slot);
}

/* --- the states that are known, and how each was come to ----------------------------------------
 */

struct origin {
    uint32_t before;
    struct move move;
} __attribute__((packed));

struct known {
    uint64_t *table; /* open addressing; 0: free */
    unsigned bits;
    struct origin *origins;
    uint64_t count, room;
};

/* Over the words that are not as in the first state, each with its place. */
static uint64_t fingerprint(const struct model *model, const uint64_t *first_state)
{
    uint64_t state[WORDS], hash = UINT64_C(0x9e3779b97f4a7c15);
    memcpy(state, model, sizeof(state));
    for (unsigned i = 0; i < WORDS; i++)
        if (state[i] != first_state[i])
            hash = mix(hash ^ (state[i] + (i + 1) * UINT64_C(0x9e3779b97f4a7c15)));
    return hash != 0 ? hash : 1;
}

/* The same with the candidates' names exchanged: what can happen to one can happen to the other. */
static uint64_t symmetric_fingerprint(const struct model *model, const uint64_t *first_state)
{
    struct model mirror = *model;
    model_mirror(&mirror);
    uint64_t one = fingerprint(model, first_state), other = fingerprint(&mirror, first_state);
    return one < other ? one : other;
}

static bool table_put(uint64_t *table, unsigned bits, uint64_t hash)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1, at = hash & mask;
    for (; table[at] != 0; at = (at + 1) & mask)
        if (table[at] == hash)
            return false;
    table[at] = hash;
    return true;
}

static void table_grow(struct known *known)
{
    uint64_t *before = known->table, size = UINT64_C(1) << known->bits;
    known->bits++;
    known->table = need(calloc(size * 2, sizeof(*known->table)));
    for (uint64_t i = 0; i < size; i++)
        if (before[i] != 0)
            (void)table_put(known->table, known->bits, before[i]);
    free(before);
}

/* @return false where the state was known. */
static bool known_put(struct known *known, const struct model *model, const uint64_t *first_state,
                      uint32_t before, struct move move)
{
    if (known->count * 4 > (UINT64_C(1) << known->bits) * 3)
        table_grow(known);
    if (!table_put(known->table, known->bits, symmetric_fingerprint(model, first_state)))
        return false;
    if (known->count == known->room) {
        known->room = known->room == 0 ? 1024 : known->room * 2;
        known->origins = need(realloc(known->origins, known->room * sizeof(*known->origins)));
    }
    known->origins[known->count++] = (struct origin){before, move};
    return true;
}

/* --- going through them
 * --------------------------------------------------------------------------- */

struct search {
    const struct model_bounds *bounds;
    struct queue queue;
    struct known known;
    struct explore_result result;
};

static unsigned path_to(const struct search *search, uint32_t state, struct move **path)
{
    unsigned length = 0;
    for (uint32_t at = state; at != 0; at = search->known.origins[at].before)
        length++;
    *path = need(calloc(length + 1, sizeof(**path)));
    unsigned i = length;
    for (uint32_t at = state; at != 0; at = search->known.origins[at].before)
        (*path)[--i] = search->known.origins[at].move;
    return length;
}

static void print_path(const struct search *search, uint32_t state, struct move last, FILE *out)
{
    struct move *path;
    struct model model;
    unsigned length = path_to(search, state, &path);
    path[length++] = last;
    (void)fprintf(out, "# %s\n", search->result.broken);
    model_begin(&model, search->bounds);
    model_print_options(out);
    (void)fputc('\n', out);
    for (unsigned i = 0; i < length; i++) {
        if (path[i].kind != MOVE_STEP)
            (void)fprintf(out, "# %c: %s\n", 'a' + path[i].who,
                          model_move_name((enum move_kind)path[i].kind));
        (void)model_move(&model, &path[i], out);
    }
    free(path);
}

/* @return false at a breach. */
static bool look_beyond(struct search *search, const struct model *model, uint32_t state, FILE *out)
{
    struct move moves[MODEL_MOVES_MAX];
    unsigned count = model_moves(model, moves);
    for (unsigned i = 0; i < count; i++) {
        struct model next = *model;
        search->result.moves++;
        search->result.broken = model_move(&next, &moves[i], NULL);
        if (search->result.broken != NULL) {
            print_path(search, state, moves[i], out);
            return false;
        }
        if (known_put(&search->known, &next, search->queue.first_state, state, moves[i]))
            queue_put(&search->queue, &next);
    }
    return true;
}

struct explore_result explore(const struct model_bounds *bounds, uint64_t states_most,
                              unsigned seconds_most, FILE *out)
{
    static struct search search;
    struct model model;
    struct move *path;
    int64_t until_ns = clock_monotonic_ns() + (int64_t)seconds_most * NS_PER_S;
    uint32_t state = 0;
    memset(&search, 0, sizeof(search));
    search.bounds = bounds;
    search.known.bits = TABLE_BITS_FIRST;
    search.known.table = need(calloc(UINT64_C(1) << TABLE_BITS_FIRST, sizeof(uint64_t)));
    model_begin(&model, bounds);
    memcpy(search.queue.first_state, &model, sizeof(model));
    (void)known_put(&search.known, &model, search.queue.first_state, 0, (struct move){0});
    queue_put(&search.queue, &model);
    search.result.complete = true;
    for (; queue_take(&search.queue, &model); state++) {
        bool late = state % LOOK_EVERY == 0 && clock_monotonic_ns() > until_ns;
        if (late || search.known.count >= states_most) {
            search.result.complete = false;
            break;
        }
        if (!look_beyond(&search, &model, state, out))
            break;
    }
    search.result.states = search.known.count;
    search.result.depth = path_to(&search, state < search.known.count ? state : state - 1, &path);
    free(path);
    queue_free(&search.queue);
    free(search.known.table);
    free(search.known.origins);
    return search.result;
}
