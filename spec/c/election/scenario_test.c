/* Every file of spec/sim/scenarios, each a test: the core decides as it says there. With REWRITE=1
 * in the environment the files are written anew, to be read before they are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

#define SCENARIOS "spec/sim/scenarios/*.txt"

static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&text, &size);
    assert_non_null(copy);
    for (int c = fgetc(file); c != EOF; c = fgetc(file))
        assert_int_equal(fputc(c, copy), c);
    assert_int_equal(fclose(copy), 0);
    return text;
}

static void show_difference(const char *path, const char *before, const char *after)
{
    int line = 1;
    while (*before != '\0' && *before == *after) {
        line += *before == '\n';
        before++;
        after++;
    }
    while (line > 1 && before[-1] != '\n') {
        before--;
        after--;
    }
    fail_msg("%s:%d: expected '%.*s', decided '%.*s'", path, line, (int)strcspn(before, "\n"),
             before, (int)strcspn(after, "\n"), after);
}

static void a_scenario(void **state)
{
    const char *path = *state;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *before = read_all(file), *after = NULL;
    size_t size = 0;
    rewind(file);
    FILE *out = open_memstream(&after, &size);
    assert_non_null(out);
    int wrong = scenario_run(file, out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(fclose(file), 0);
    if (wrong != 0)
        fail_msg("%s:%d: neither an option nor an event", path, wrong);
    if (strcmp(before, after) != 0 && getenv("REWRITE") != NULL) {
        file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(after, file) >= 0);
        assert_int_equal(fclose(file), 0);
    } else if (strcmp(before, after) != 0) {
        show_difference(path, before, after);
    }
    free(before);
    free(after);
}

int main(void)
{
    glob_t files;
    if (glob(SCENARIOS, 0, NULL, &files) != 0) {
        (void)fprintf(stderr, "no scenarios: run this where %s is\n", SCENARIOS);
        return 1;
    }
    struct CMUnitTest *tests = calloc(files.gl_pathc, sizeof(*tests));
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < files.gl_pathc; i++)
        tests[i] =
            (struct CMUnitTest){files.gl_pathv[i], a_scenario, NULL, NULL, files.gl_pathv[i]};
    int failed = _cmocka_run_group_tests("scenarios", tests, files.gl_pathc, NULL, NULL);
    free(tests);
    globfree(&files);
    return failed;
}
