/**
 * An intrusive doubly linked list: the node lives inside the element, so adding and removing never
 * allocates.
 */
#ifndef CROWN_BASE_LIST_H
#define CROWN_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *next, *previous; /* NULL while in no list */
};

struct list {
    struct list_node head;
};

static inline void list_init(struct list *list)
{
    list->head.next = list->head.previous = &list->head;
}

static inline bool list_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline void list_append(struct list *list, struct list_node *node)
{
    node->next = &list->head;
    node->previous = list->head.previous;
    list->head.previous->next = node;
    list->head.previous = node;
}

/** Takes a node out of its list; harmless for one that is in none. */
static inline void list_remove(struct list_node *node)
{
    if (node->next == NULL)
        return;
    node->previous->next = node->next;
    node->next->previous = node->previous;
    node->next = node->previous = NULL;
}

/** @return the first node, or NULL. */
static inline struct list_node *list_first(const struct list *list)
{
    /* The checker does not follow how list_remove unlinks through the neighbours. */
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
    return list_empty(list) ? NULL : list->head.next;
}

/** @return the node behind `node`, or NULL at the end. */
static inline struct list_node *list_next(const struct list *list, const struct list_node *node)
{
    return node->next == &list->head ? NULL : node->next;
}

/** @return the last node, or NULL. */
static inline struct list_node *list_last(const struct list *list)
{
    return list_empty(list) ? NULL : list->head.previous;
}

/** @return the node before `node`, or NULL at the beginning. */
static inline struct list_node *list_previous(const struct list *list, const struct list_node *node)
{
    return node->previous == &list->head ? NULL : node->previous;
}

/** Walks a list; the body must not remove the node it stands on. */
#define list_each(node, list)                                                                      \
    for (struct list_node *node = list_first(list); node != NULL; node = list_next(list, node))

#endif
