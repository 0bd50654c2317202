#include "base/heap.h"

#include <stdlib.h>

/* Eight children a place stand in two cache lines, and are compared without a look at their nodes:
 * what counts with many thousands of instants is how much memory is touched, and each level touches
 * a node. */
#define CHILDREN 8
#define ROOM_FIRST 64

static void put(struct heap *heap, size_t place, struct heap_slot slot)
{
    heap->slots[place - 1] = slot;
    slot.node->place = place;
}

static size_t parent_of(size_t place)
{
    return (place + CHILDREN - 2) / CHILDREN;
}

static void sift_up(struct heap *heap, size_t place, struct heap_slot slot)
{
    while (place > 1 && heap->slots[parent_of(place) - 1].key > slot.key) {
        put(heap, place, heap->slots[parent_of(place) - 1]);
        place = parent_of(place);
    }
    put(heap, place, slot);
}

/* @return the child with the least key; 0 when there is none. */
static size_t least_child(const struct heap *heap, size_t place)
{
    size_t first = (place - 1) * CHILDREN + 2, least = first;
    if (first > heap->count)
        return 0;
    for (size_t child = first + 1; child < first + CHILDREN && child <= heap->count; child++)
        if (heap->slots[child - 1].key < heap->slots[least - 1].key)
            least = child;
    return least;
}

static void sift_down(struct heap *heap, size_t place, struct heap_slot slot)
{
    size_t child;
    while ((child = least_child(heap, place)) != 0 && heap->slots[child - 1].key < slot.key) {
        put(heap, place, heap->slots[child - 1]);
        place = child;
    }
    put(heap, place, slot);
}

static void settle(struct heap *heap, size_t place, struct heap_slot slot)
{
    if (place > 1 && heap->slots[parent_of(place) - 1].key > slot.key)
        sift_up(heap, place, slot);
    else
        sift_down(heap, place, slot);
}

static int grow(struct heap *heap)
{
    size_t room = heap->room == 0 ? ROOM_FIRST : heap->room * 2;
    struct heap_slot *slots = realloc(heap->slots, room * sizeof(*slots));
    if (slots == NULL)
        return -1;
    heap->slots = slots;
    heap->room = room;
    return 0;
}

int heap_set(struct heap *heap, struct heap_node *node, int64_t key)
{
    size_t place = node->place;
    if (place == 0) {
        if (heap->count == heap->room && grow(heap) < 0)
            return -1;
        place = ++heap->count;
    }
    node->key = key;
    settle(heap, place, (struct heap_slot){key, node});
    return 0;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    size_t place = node->place;
    if (place == 0)
        return;
    struct heap_slot last = heap->slots[heap->count - 1];
    heap->count--;
    if (last.node != node)
        settle(heap, place, last);
    node->place = 0;
}

struct heap_node *heap_top(const struct heap *heap)
{
    return heap->count > 0 ? heap->slots[0].node : NULL;
}

void heap_free(struct heap *heap)
{
    free(heap->slots);
    heap->slots = NULL;
    heap->count = heap->room = 0;
}
