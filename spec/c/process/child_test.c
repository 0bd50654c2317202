/* How a child is started, what it finds, and how it is asked to end. */
#include "process/spawn.h"

#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const struct wire_message *start_failing(const char *program, const char *cwd)
{
    stage.board->program = program;
    stage.board->spec.cwd = cwd;
    stage_start();
    return stage_until_message(WIRE_START_FAILED);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    (void)state;
    const struct wire_message *failed = start_failing("/nonexistent/app", NULL);
    assert_int_equal(failed->error, ENOENT);
    assert_string_equal(failed->text, "run /nonexistent/app: No such file or directory");
    (void)stage_until_message(WIRE_GONE);
    assert_null(stage_message(WIRE_STARTED));
}

static void a_program_not_on_the_path_is_named(void **state)
{
    (void)state;
    assert_string_equal(start_failing("no-such-program", NULL)->text,
                        "run no-such-program: No such file or directory");
}

static void a_program_that_may_not_be_executed_is_named(void **state)
{
    (void)state;
    const struct wire_message *failed = start_failing("/etc/passwd", NULL);
    assert_int_equal(failed->error, EACCES);
    assert_string_equal(failed->text, "run /etc/passwd: Permission denied");
    (void)stage_until_message(WIRE_GONE);
}

static void a_directory_that_is_not_there_is_named(void **state)
{
    (void)state;
    const struct wire_message *failed = start_failing("/bin/true", "/nonexistent");
    assert_int_equal(failed->error, ENOENT);
    assert_string_equal(failed->text,
                        "run /bin/true: cannot change to /nonexistent: No such file or directory");
}

static void a_namespaced_program_that_is_not_there_is_named(void **state)
{
    (void)state;
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    assert_int_equal(start_failing("/nonexistent/app", NULL)->error, ENOENT);
    (void)stage_until_message(WIRE_GONE);
}

static int oom_score_of(pid_t pid)
{
    char path[64];
    char text[16] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    assert_int_equal(close(fd), 0);
    return atoi(text);
}

static void assert_clean(const struct stage_world *world)
{
    assert_true(world->blocked == 0);
    assert_true(world->ignored == 0);
    assert_true(world->leads_group);
    assert_int_equal(world->death_signal, SIGKILL);
}

static void a_child_finds_a_clean_world(void **state)
{
    (void)state;
    struct stage_world world;
    stage.board->mode = "world";
    stage.board->spec.cwd = "/usr";
    (void)signal(SIGHUP, SIG_IGN); /* as nohup(1) leaves it */
    stage_start();
    (void)signal(SIGHUP, SIG_DFL);
    stage_world(&world);
    assert_clean(&world);
    assert_string_equal(world.cwd, "/usr");
    assert_int_equal(world.oom_score, oom_score_of(getpid()));
    assert_int_equal(world.fd_count, 3);
    for (int fd = 0; fd < 3; fd++)
        assert_int_equal(world.fds[fd], fd);
}

/* Real-time priority comes and goes in between, for those above the child. */
static void a_child_is_as_nice_as_the_supervisor_was(void **state)
{
    (void)state;
    struct stage_world world;
    stage.board->mode = "world";
    stage.board->niceness = 15;
    stage_start();
    stage_world(&world);
    assert_int_equal(world.niceness, 15);
}

static void a_runtime_is_not_spared_when_memory_is_short(void **state)
{
    (void)state;
    stage_start();
    stage_until_ticking(0);
    assert_int_equal(oom_score_of(stage_pid("crown-runtime")), oom_score_of(getpid()));
    stage_stop_in(0);
    stage_until_gone();
}

static void keeper_and_warden_are_spared_and_on_time_as_their_supervisor_is(void **state)
{
    (void)state;
    stage_start();
    stage_until_ticking(0);
    const pid_t pids[] = {stage_pid("crown-keeper"), stage_pid("crown-warden")};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(oom_score_of(pids[i]), oom_score_of(stage.supervisor));
        assert_int_equal(sched_getscheduler(pids[i]), sched_getscheduler(stage.supervisor));
    }
    stage_stop_in(0);
    stage_until_gone();
}

static void a_namespaced_child_finds_a_clean_world(void **state)
{
    (void)state;
    struct stage_world world;
    stage.board->mode = "world";
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    stage_start();
    stage_world(&world);
    assert_clean(&world);
    assert_int_equal(world.fd_count, 3);
}

static void a_child_gets_its_streams_and_the_descriptors_it_holds_and_no_others(void **state)
{
    (void)state;
    struct stage_world world;
    int held = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    int stream = open("/dev/zero", O_RDWR | O_CLOEXEC);
    assert_true(held >= 0 && stream >= 0);
    stage.board->mode = "world";
    stage.board->spec.stdio[0] = CHILD_STDIO_NULL;
    stage.board->spec.stdio[1] = CHILD_STDIO_FD;
    stage.board->spec.stdio_fd[1] = stream;
    stage.board->spec.hold_count = 2;
    stage.board->spec.hold_fd[0] = held;
    stage.board->spec.hold_fd[1] = stream;
    stage_start();
    assert_int_equal(close(held) | close(stream), 0);
    stage_world(&world);
    assert_int_equal(world.fd_count, 5);
    assert_true(world.null[0]);
    assert_false(world.null[1]);
    assert_true(world.fds[3] >= 100 && world.fds[4] >= 100);
}

static int temporary(const char *text)
{
    int fd = memfd_create("stream", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void assert_has(int fd, const char *wanted)
{
    char text[64];
    ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
    assert_true(size >= 0);
    text[size] = '\0';
    assert_string_equal(text, wanted);
}

static const char SCRIPT[] = "#!/bin/sh\nread line; echo \"got $line\"; echo err >&2; exit 3\n";

static void each_stream_is_its_own(void **state)
{
    (void)state;
    static char script[48];
    const int fds[3] = {temporary("this\n"), temporary(""), temporary("")};
    (void)snprintf(script, sizeof(script), "%s/script", stage.folder);
    int fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_int_equal(write(fd, SCRIPT, strlen(SCRIPT)), strlen(SCRIPT));
    assert_int_equal(close(fd), 0);
    for (int stream = 0; stream < 3; stream++) {
        stage.board->spec.stdio[stream] = CHILD_STDIO_FD;
        stage.board->spec.stdio_fd[stream] = fds[stream];
    }
    stage.board->program = script;
    stage_start();
    const int status = stage_until_message(WIRE_EXITED)->status;
    assert_int_equal(unlink(script), 0);
    assert_int_equal(status, 3 << 8);
    assert_has(fds[1], "got this\n");
    assert_has(fds[2], "err\n");
    for (int stream = 0; stream < 3; stream++)
        assert_int_equal(close(fds[stream]), 0);
}

/* @return how many descriptors of a kind a process has, besides its standard streams. */
static unsigned count_descriptors(const char *process, const char *kind)
{
    char path[64];
    char target[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)stage_pid(process));
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = '\0';
        if (atoi(entry->d_name) > STDERR_FILENO && strncmp(target, kind, strlen(kind)) == 0)
            count++;
    }
    assert_int_equal(closedir(folder), 0);
    return count;
}

/* The end of file of a stream, or of a line, means that its owner has ended. */
static void nobody_but_the_child_has_its_streams_and_nobody_has_anothers_line(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    stage.board->spec.stdio[1] = CHILD_STDIO_FD;
    stage.board->spec.stdio_fd[1] = ends[1];
    stage_start();
    stage_until_ticking(0);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
    assert_int_equal(count_descriptors("crown-keeper", "pipe:"), 0);
    assert_int_equal(count_descriptors("crown-warden", "pipe:"), 0);
    assert_int_equal(count_descriptors("crown-keeper", "socket:"), 2);  /* runtime, warden */
    assert_int_equal(count_descriptors("crown-warden", "socket:"), 1);  /* keeper */
    assert_int_equal(count_descriptors("crown-runtime", "socket:"), 2); /* supervisor, keeper */
    stage_stop_in(0);
    stage_until_gone();
}

static void a_child_of_another_user_has_its_ids_only_and_still_dies_with_its_parent(void **state)
{
    (void)state;
    static const gid_t groups[] = {7, 8};
    struct stage_world world;
    stage.board->mode = "world";
    stage.board->spec.set_ids = true;
    stage.board->spec.uid = stage.board->spec.gid = STAGE_NOBODY;
    stage.board->spec.groups = groups;
    stage.board->spec.group_count = 2;
    stage_start();
    stage_world(&world);
    assert_clean(&world);
    assert_int_equal(world.uid, STAGE_NOBODY);
    assert_int_equal(world.gid, STAGE_NOBODY);
    assert_int_equal(world.group_count, 2);
    assert_int_equal(world.groups[0], 7);
    assert_int_equal(world.groups[1], 8);
}

static void a_user_that_may_not_be_become_is_an_error(void **state)
{
    (void)state;
    stage.board->unprivileged = true;
    stage.board->spec.set_ids = true; /* root's */
    assert_int_equal(start_failing("/bin/true", NULL)->error, EPERM);
    assert_string_equal(stage_message(WIRE_START_FAILED)->text,
                        "run /bin/true: cannot change to its user: Operation not permitted");
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_program_that_is_not_there_is_named),
        STAGE_TEST_READY(a_program_that_is_not_there_is_named),
        STAGE_TEST(a_program_not_on_the_path_is_named),
        STAGE_TEST_READY(a_program_not_on_the_path_is_named),
        STAGE_TEST(a_program_that_may_not_be_executed_is_named),
        STAGE_TEST_READY(a_program_that_may_not_be_executed_is_named),
        STAGE_TEST(a_directory_that_is_not_there_is_named),
        STAGE_TEST_READY(a_directory_that_is_not_there_is_named),
        STAGE_TEST(a_namespaced_program_that_is_not_there_is_named),
        STAGE_TEST_READY(a_namespaced_program_that_is_not_there_is_named),
        STAGE_TEST(a_child_finds_a_clean_world),
        STAGE_TEST_READY(a_child_finds_a_clean_world),
        STAGE_TEST(a_child_is_as_nice_as_the_supervisor_was),
        STAGE_TEST_READY(a_child_is_as_nice_as_the_supervisor_was),
        STAGE_TEST(a_runtime_is_not_spared_when_memory_is_short),
        STAGE_TEST(keeper_and_warden_are_spared_and_on_time_as_their_supervisor_is),
        STAGE_TEST_READY(keeper_and_warden_are_spared_and_on_time_as_their_supervisor_is),
        STAGE_TEST_READY(a_runtime_is_not_spared_when_memory_is_short),
        STAGE_TEST(a_namespaced_child_finds_a_clean_world),
        STAGE_TEST_READY(a_namespaced_child_finds_a_clean_world),
        STAGE_TEST(a_child_gets_its_streams_and_the_descriptors_it_holds_and_no_others),
        STAGE_TEST_READY(a_child_gets_its_streams_and_the_descriptors_it_holds_and_no_others),
        STAGE_TEST(each_stream_is_its_own),
        STAGE_TEST_READY(each_stream_is_its_own),
        STAGE_TEST(nobody_but_the_child_has_its_streams_and_nobody_has_anothers_line),
        STAGE_TEST_READY(nobody_but_the_child_has_its_streams_and_nobody_has_anothers_line),
        STAGE_TEST(a_child_of_another_user_has_its_ids_only_and_still_dies_with_its_parent),
        STAGE_TEST_READY(a_child_of_another_user_has_its_ids_only_and_still_dies_with_its_parent),
        STAGE_TEST(a_user_that_may_not_be_become_is_an_error),
        STAGE_TEST_READY(a_user_that_may_not_be_become_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
