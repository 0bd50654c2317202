#include "base/heap.h"

#include <stdlib.h>

static void put(struct heap *heap, size_t place, struct heap_node *node)
{
    heap->nodes[place - 1] = node;
    node->place = place;
}

static void sift_up(struct heap *heap, struct heap_node *node)
{
    size_t place = node->place;
    while (place > 1 && heap->nodes[place / 2 - 1]->key > node->key) {
        put(heap, place, heap->nodes[place / 2 - 1]);
        place /= 2;
    }
    put(heap, place, node);
}

static void sift_down(struct heap *heap, struct heap_node *node)
{
    size_t place = node->place;
    for (;;) {
        size_t child = place * 2;
        if (child > heap->count)
            break;
        if (child < heap->count && heap->nodes[child]->key < heap->nodes[child - 1]->key)
            child++;
        if (heap->nodes[child - 1]->key >= node->key)
            break;
        put(heap, place, heap->nodes[child - 1]);
        place = child;
    }
    put(heap, place, node);
}

int heap_set(struct heap *heap, struct heap_node *node, int64_t key)
{
    if (node->place == 0) {
        if (heap->count == heap->room) {
            size_t room = heap->room == 0 ? 64 : heap->room * 2;
            struct heap_node **nodes = realloc(heap->nodes, room * sizeof(struct heap_node *));
            if (nodes == NULL)
                return -1;
            heap->nodes = nodes;
            heap->room = room;
        }
        heap->count++;
        put(heap, heap->count, node);
    }
    node->key = key;
    sift_up(heap, node);
    sift_down(heap, node);
    return 0;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (node->place == 0)
        return;
    struct heap_node *last = heap->nodes[heap->count - 1];
    heap->count--;
    if (last != node) {
        put(heap, node->place, last);
        sift_up(heap, last);
        sift_down(heap, last);
    }
    node->place = 0;
}

struct heap_node *heap_top(const struct heap *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

void heap_free(struct heap *heap)
{
    free(heap->nodes);
    heap->nodes = NULL;
    heap->count = heap->room = 0;
}
