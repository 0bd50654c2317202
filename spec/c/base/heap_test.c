#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

#define NODES 300u
#define STEPS 20000u

/* What a heap must do, done the slow way: look through all nodes. */
static int64_t least_key(const struct heap_node *nodes, unsigned *members)
{
    int64_t least = INT64_MAX;
    *members = 0;
    for (unsigned i = 0; i < NODES; i++) {
        if (nodes[i].place == 0)
            continue;
        (*members)++;
        least = nodes[i].key < least ? nodes[i].key : least;
    }
    return least;
}

static void assert_matches(const struct heap *heap, const struct heap_node *nodes)
{
    unsigned members;
    int64_t least = least_key(nodes, &members);
    const struct heap_node *top = heap_top(heap);
    assert_int_equal(heap->count, members);
    if (members == 0) {
        assert_null(top);
        return;
    }
    assert_non_null(top);
    assert_int_equal(top->key, least);
    for (size_t place = 1; place <= heap->count; place++)
        assert_int_equal(heap->slots[place - 1].node->place, place);
}

static void the_top_is_the_least_whatever_is_inserted_moved_or_removed(void **state)
{
    (void)state;
    static struct heap_node nodes[NODES];
    struct heap heap = {0};
    struct random random;
    random_seed(&random, 42);
    for (unsigned step = 0; step < STEPS; step++) {
        struct heap_node *node = &nodes[random_below(&random, NODES)];
        /* Few different keys, so that many are equal. */
        int64_t key = (int64_t)random_below(&random, 100) - 50;
        if (random_below(&random, 3) == 0)
            heap_remove(&heap, node);
        else
            assert_int_equal(heap_set(&heap, node, key), 0);
        assert_matches(&heap, nodes);
    }
    int64_t previous = INT64_MIN;
    for (struct heap_node *top; (top = heap_top(&heap)) != NULL;) {
        assert_true(top->key >= previous);
        previous = top->key;
        heap_remove(&heap, top);
        assert_int_equal(top->place, 0);
    }
    heap_free(&heap);
}

static void removing_a_node_that_is_in_no_heap_is_harmless(void **state)
{
    (void)state;
    struct heap heap = {0};
    struct heap_node inside = {0};
    struct heap_node outside = {0};
    assert_int_equal(heap_set(&heap, &inside, 1), 0);
    heap_remove(&heap, &outside);
    assert_ptr_equal(heap_top(&heap), &inside);
    heap_free(&heap);
    assert_null(heap_top(&heap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_top_is_the_least_whatever_is_inserted_moved_or_removed),
        cmocka_unit_test(removing_a_node_that_is_in_no_heap_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
