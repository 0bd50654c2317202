#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_list_keeps_the_order_of_appending(void **state)
{
    (void)state;
    struct list list;
    struct list_node nodes[5] = {{0}};
    unsigned seen = 0;
    list_init(&list);
    assert_true(list_empty(&list));
    assert_null(list_first(&list));
    for (unsigned i = 0; i < 5; i++)
        list_append(&list, &nodes[i]);
    list_each(node, &list) assert_ptr_equal(node, &nodes[seen++]);
    assert_int_equal(seen, 5);
    assert_null(list_next(&list, &nodes[4]));
}

static void a_list_is_walked_from_its_end_too(void **state)
{
    (void)state;
    struct list list;
    struct list_node nodes[3] = {{0}};
    list_init(&list);
    assert_null(list_last(&list));
    for (unsigned i = 0; i < 3; i++)
        list_append(&list, &nodes[i]);
    assert_ptr_equal(list_last(&list), &nodes[2]);
    assert_ptr_equal(list_previous(&list, &nodes[2]), &nodes[1]);
    assert_null(list_previous(&list, &nodes[0]));
}

static void a_node_can_leave_from_anywhere_and_come_back(void **state)
{
    (void)state;
    struct list list;
    struct list_node nodes[3] = {{0}};
    list_init(&list);
    for (unsigned i = 0; i < 3; i++)
        list_append(&list, &nodes[i]);
    list_remove(&nodes[1]);
    list_remove(&nodes[1]); /* the second time finds it in no list */
    assert_ptr_equal(list_next(&list, &nodes[0]), &nodes[2]);
    list_remove(&nodes[0]);
    assert_ptr_equal(list_first(&list), &nodes[2]);
    list_append(&list, &nodes[1]);
    assert_ptr_equal(list_next(&list, &nodes[2]), &nodes[1]);
    list_remove(&nodes[2]);
    list_remove(&nodes[1]);
    assert_true(list_empty(&list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_keeps_the_order_of_appending),
        cmocka_unit_test(a_list_is_walked_from_its_end_too),
        cmocka_unit_test(a_node_can_leave_from_anywhere_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
