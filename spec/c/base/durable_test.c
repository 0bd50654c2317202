/* Small files that are changed so that the disk has them. */
#include "base/durable.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/crown-durable-XXXXXX";
static char path[PATH_MAX];

static int begin(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/file", directory);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path); /* the last test may have removed it */
    return rmdir(directory);
}

static void assert_holds(const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t size = fread(found, 1, sizeof(found) - 1, file);
    assert_int_equal(0, fclose(file));
    assert_int_equal(strlen(text), size);
    assert_string_equal(text, found);
}

static void a_file_is_made_for_its_owner_and_made_once(void **state)
{
    struct crown_error err;
    struct stat info;
    (void)state;
    assert_int_equal(0, durable_create(path, &err));
    assert_int_equal(0, stat(path, &info));
    assert_int_equal(0600, info.st_mode & 0777);
    assert_int_equal(0, durable_replace(path, "a", 1, &err));
    assert_int_equal(0, durable_create(path, &err));
    assert_holds("a");
}

static void what_it_holds_is_replaced_and_nothing_of_it_is_left(void **state)
{
    struct crown_error err;
    char number[DURABLE_NUMBER_SIZE];
    struct stat info;
    (void)state;
    assert_int_equal(0, durable_replace(path, "longer", 6, &err));
    assert_int_equal(0, stat(path, &info));
    durable_number(&info, number);
    assert_int_equal(0, durable_write(path, number, "text", 4, &err));
    assert_holds("text");
}

static void another_file_in_its_place_is_left_alone(void **state)
{
    struct crown_error err;
    (void)state;
    assert_int_equal(0, durable_replace(path, "mine", 4, &err));
    assert_int_equal(-1, durable_write(path, "00:00:1", "text", 4, &err));
    assert_non_null(strstr(err.message, "is another file by now"));
    assert_holds("mine");
}

static void what_is_not_there_is_removed_and_not_touched(void **state)
{
    struct crown_error err;
    (void)state;
    assert_int_equal(0, durable_touch(path, &err));
    assert_int_equal(0, durable_remove(path, &err));
    assert_int_equal(0, durable_remove(path, &err));
    assert_int_equal(-1, durable_touch(path, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_made_for_its_owner_and_made_once),
        cmocka_unit_test(what_it_holds_is_replaced_and_nothing_of_it_is_left),
        cmocka_unit_test(another_file_in_its_place_is_left_alone),
        cmocka_unit_test(what_is_not_there_is_removed_and_not_touched),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
