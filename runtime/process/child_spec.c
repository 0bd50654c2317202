#include "process/child_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPEC_MAX (2u << 20) /* as much as execve(2) takes by default: ARG_MAX */
#define SPEC_MAGIC 0x63726f77u
#define GROUPS_MAX 1024u
#define STRINGS_MAX (SPEC_MAX / 8) /* more than execve(2) takes: it counts a pointer for each */

/* The fixed part; the strings follow: argv, envp, cwd, label, each NUL-terminated, then the groups.
 */
struct block {
    uint32_t magic;
    uint32_t argc, envc, group_count;
    uint32_t has_cwd;
    uint32_t set_ids;
    uint32_t uid, gid;
    uint32_t stdio[3];
    uint32_t hold_count;
    int32_t stop_signal, lease_signal;
    uint32_t terminal, escalate, isolation;
    int64_t stop_at_ns, kill_at_ns, deadline_ns;
    uint64_t text_size;
};

static size_t text_length(const struct child_spec *spec, uint32_t *argc, uint32_t *envc)
{
    size_t length = strlen(spec->label) + 1 + (spec->cwd != NULL ? strlen(spec->cwd) + 1 : 0);
    *argc = *envc = 0;
    for (char *const *s = spec->argv; *s != NULL; s++, (*argc)++)
        length += strlen(*s) + 1;
    for (char *const *s = spec->envp; *s != NULL; s++, (*envc)++)
        length += strlen(*s) + 1;
    return length;
}

static char *put_text(char *at, const char *text)
{
    return stpcpy(at, text) + 1;
}

void child_spec_hold(struct child_spec *spec, const struct scope_hold *hold)
{
    for (int i = 0; i < SCOPE_HOLDS; i++)
        if (hold->fds[i] >= 0 && spec->hold_count < CHILD_MAX_HOLD)
            spec->hold_fd[spec->hold_count++] = hold->fds[i];
}

static void fill(const struct child_spec *spec, struct block *block)
{
    block->magic = SPEC_MAGIC;
    block->group_count = (uint32_t)spec->group_count;
    block->has_cwd = spec->cwd != NULL;
    block->set_ids = spec->set_ids;
    block->uid = spec->uid;
    block->gid = spec->gid;
    for (int i = 0; i < 3; i++)
        block->stdio[i] = (uint32_t)spec->stdio[i];
    block->hold_count = spec->hold_count;
    block->stop_signal = spec->stop_signal;
    block->lease_signal = spec->lease_signal;
    block->terminal = spec->terminal;
    block->escalate = spec->escalate;
    block->isolation = (uint32_t)spec->isolation;
    block->stop_at_ns = spec->stop_at_ns;
    block->kill_at_ns = spec->kill_at_ns;
    block->deadline_ns = spec->deadline_ns;
    char *at = (char *)(block + 1);
    for (char *const *s = spec->argv; *s != NULL; s++)
        at = put_text(at, *s);
    for (char *const *s = spec->envp; *s != NULL; s++)
        at = put_text(at, *s);
    if (spec->cwd != NULL)
        at = put_text(at, spec->cwd);
    at = put_text(at, spec->label);
    if (spec->group_count > 0)
        memcpy(at, spec->groups, spec->group_count * sizeof(gid_t));
}

static int write_memfd(const void *bytes, size_t size, struct crown_error *err)
{
    int fd = memfd_create("crown-child", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_set_errno(err, errno, "make a memfd for the child");
    for (size_t done = 0; done < size;) {
        ssize_t wrote = write(fd, (const char *)bytes + done, size - done);
        if (wrote < 0) {
            int saved = errno;
            (void)close(fd);
            return error_set_errno(err, saved, "describe the child");
        }
        done += (size_t)wrote;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        int saved = errno;
        (void)close(fd);
        return error_set_errno(err, saved, "seal the child's description");
    }
    return fd;
}

int child_spec_write(const struct child_spec *spec, struct crown_error *err)
{
    uint32_t argc, envc;
    size_t text_size = text_length(spec, &argc, &envc);
    size_t size = sizeof(struct block) + text_size + spec->group_count * sizeof(gid_t);
    if (argc > STRINGS_MAX || envc > STRINGS_MAX)
        return error_set(err, ERROR_USAGE, "run %s: %u words and %u variables, at most %u fit",
                         spec->argv[0], argc, envc, STRINGS_MAX);
    if (size > SPEC_MAX || spec->group_count > GROUPS_MAX)
        return error_set(err, ERROR_USAGE,
                         "run %s: arguments and environment take %zu bytes, at most %u fit",
                         spec->argv[0], size, SPEC_MAX);
    struct block *block = calloc(1, size);
    if (block == NULL)
        return error_set(err, ERROR_MEMORY, "run %s: out of memory", spec->argv[0]);
    block->argc = argc;
    block->envc = envc;
    block->text_size = text_size;
    fill(spec, block);
    int fd = write_memfd(block, size, err);
    free(block);
    return fd;
}

/* Takes the next string off the text; NULL when there is none. */
static char *take_text(char **at, const char *end)
{
    char *text = *at;
    char *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;
    if (nul == NULL)
        return NULL;
    *at = nul + 1;
    return text;
}

static char **take_list(char **at, const char *end, uint32_t count)
{
    char **list = calloc((size_t)count + 1, sizeof(*list));
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        list[i] = take_text(at, end);
        if (list[i] == NULL) {
            free(list);
            return NULL;
        }
    }
    return list;
}

static bool plausible(const struct block *block, size_t size)
{
    return size >= sizeof(*block) && size <= SPEC_MAX && block->magic == SPEC_MAGIC &&
           block->argc > 0 && block->argc <= STRINGS_MAX && block->envc <= STRINGS_MAX &&
           block->group_count <= GROUPS_MAX && block->hold_count <= CHILD_MAX_HOLD &&
           block->isolation <= CHILD_ISOLATION_PIDNS && block->stop_signal > 0 &&
           block->stop_signal < 65 && block->text_size <= SPEC_MAX &&
           sizeof(*block) + block->text_size + block->group_count * sizeof(gid_t) == size;
}

/* Fills the spec as far as it comes. */
static int parse(struct block *block, size_t size, struct child_spec *spec)
{
    if (!plausible(block, size))
        return -1;
    char *at = (char *)(block + 1);
    const char *end = at + block->text_size;
    spec->argv = take_list(&at, end, block->argc);
    spec->envp = spec->argv != NULL ? take_list(&at, end, block->envc) : NULL;
    if (spec->envp == NULL)
        return -1;
    spec->cwd = block->has_cwd ? take_text(&at, end) : NULL;
    spec->label = take_text(&at, end);
    if (spec->label == NULL || (block->has_cwd && spec->cwd == NULL))
        return -1;
    spec->set_ids = block->set_ids != 0;
    spec->uid = block->uid;
    spec->gid = block->gid;
    gid_t *groups = calloc((size_t)block->group_count + 1, sizeof(*groups));
    if (groups == NULL)
        return -1;
    memcpy(groups, end, block->group_count * sizeof(*groups)); /* where they lie is not aligned */
    spec->groups = groups;
    spec->group_count = block->group_count;
    int next = 0;
    for (int i = 0; i < 3; i++) {
        if (block->stdio[i] > CHILD_STDIO_FD)
            return -1;
        spec->stdio[i] = (enum child_stdio)block->stdio[i];
        if (spec->stdio[i] == CHILD_STDIO_FD)
            spec->stdio_fd[i] = next++;
    }
    spec->hold_count = block->hold_count;
    for (unsigned i = 0; i < spec->hold_count; i++)
        spec->hold_fd[i] = next++;
    spec->stop_signal = block->stop_signal;
    spec->lease_signal = block->lease_signal;
    spec->terminal = block->terminal != 0;
    spec->escalate = block->escalate != 0;
    spec->isolation = (enum child_isolation)block->isolation;
    spec->stop_at_ns = block->stop_at_ns;
    spec->kill_at_ns = block->kill_at_ns;
    spec->deadline_ns = block->deadline_ns;
    return 0;
}

int child_spec_read(int memfd, struct child_spec *spec, struct crown_error *err)
{
    struct stat info;
    if (fstat(memfd, &info) < 0)
        return error_set_errno(err, errno, "read the child's description");
    size_t size = (size_t)info.st_size;
    if (size == 0 || size > SPEC_MAX)
        return error_set(err, ERROR_PROTOCOL, "the child's description has %zu bytes", size);
    /* Private: the strings are handed to execve as they lie. */
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd, 0);
    if (block == MAP_FAILED)
        return error_set_errno(err, errno, "map the child's description");
    memset(spec, 0, sizeof(*spec));
    if (parse(block, size, spec) == 0)
        return 0;
    free((void *)spec->argv);
    free((void *)spec->envp);
    free((void *)spec->groups);
    (void)munmap(block, size); /* fails for wrong arguments only */
    return error_set(err, ERROR_PROTOCOL, "the child's description makes no sense");
}
