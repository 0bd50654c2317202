/**
 * An intrusive min-heap of instants: an array that grows, elements that know their place.
 */
#ifndef CROWN_BASE_HEAP_H
#define CROWN_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_node {
    int64_t key;
    size_t place; /* 1-based; 0 while in no heap */
};

/* A key stands beside its node, so that comparing touches no node. */
struct heap_slot {
    int64_t key;
    struct heap_node *node;
};

struct heap {
    struct heap_slot *slots;
    size_t count, room;
};

/**
 * Inserts a node, or moves it when it is in the heap already. O(log n).
 * @return 0, or -1 when memory is out (only an insertion can fail).
 */
int heap_set(struct heap *heap, struct heap_node *node, int64_t key);

/** Takes a node out; harmless when it is in no heap. O(log n). */
void heap_remove(struct heap *heap, struct heap_node *node);

/** @return the node with the least key, or NULL. */
struct heap_node *heap_top(const struct heap *heap);

/** Frees the array; the nodes are their owners'. */
void heap_free(struct heap *heap);

#endif
