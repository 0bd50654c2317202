#include "process/child_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
    uint32_t terminal, ctrl_c_ends, escalate, isolation;
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
    block->ctrl_c_ends = spec->ctrl_c_ends;
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
    errno = ENOSPC; /* where a part was written: memory is out */
    if (write(fd, bytes, size) != (ssize_t)size) {
        int saved = errno;
        (void)close(fd);
        return error_set_errno(err, saved, "describe the child");
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
    if (spec->group_count > GROUPS_MAX)
        return error_set(err, ERROR_USAGE, "run %s: its user is in %zu groups, at most %u fit",
                         spec->argv[0], spec->group_count, GROUPS_MAX);
    if (size > SPEC_MAX)
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
    char *nul = memchr(text, '\0', (size_t)(end - text));
    if (nul == NULL)
        return NULL;
    *at = nul + 1;
    return text;
}

/* @param list room for so many and NULL. */
static int take_list(char **at, const char *end, char **list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        list[i] = take_text(at, end);
        if (list[i] == NULL)
            return -1;
    }
    list[count] = NULL;
    return 0;
}

static bool plausible(const struct block *block, size_t size)
{
    return block->magic == SPEC_MAGIC && block->argc > 0 && block->argc <= STRINGS_MAX &&
           block->envc <= STRINGS_MAX && block->group_count <= GROUPS_MAX &&
           block->hold_count <= CHILD_MAX_HOLD && block->isolation <= CHILD_ISOLATION_PIDNS &&
           block->stop_signal > 0 && block->stop_signal < 65 && block->text_size <= SPEC_MAX &&
           sizeof(*block) + block->text_size + block->group_count * sizeof(gid_t) == size;
}

static void take_numbers(const struct block *block, struct child_spec *spec)
{
    spec->set_ids = block->set_ids != 0;
    spec->uid = block->uid;
    spec->gid = block->gid;
    spec->group_count = block->group_count;
    spec->hold_count = block->hold_count;
    spec->stop_signal = block->stop_signal;
    spec->lease_signal = block->lease_signal;
    spec->terminal = block->terminal != 0;
    spec->ctrl_c_ends = block->ctrl_c_ends != 0;
    spec->escalate = block->escalate != 0;
    spec->isolation = (enum child_isolation)block->isolation;
    spec->stop_at_ns = block->stop_at_ns;
    spec->kill_at_ns = block->kill_at_ns;
    spec->deadline_ns = block->deadline_ns;
}

static int count_descriptors(const struct block *block, struct child_spec *spec)
{
    int next = 0;
    for (int i = 0; i < 3; i++) {
        if (block->stdio[i] > CHILD_STDIO_FD)
            return -1;
        spec->stdio[i] = (enum child_stdio)block->stdio[i];
        if (spec->stdio[i] == CHILD_STDIO_FD)
            spec->stdio_fd[i] = next++;
    }
    for (unsigned i = 0; i < block->hold_count; i++)
        spec->hold_fd[i] = next++;
    return 0;
}

/* What a description takes as it is read: the lists of its strings, the groups, the text. */
struct parts {
    char **argv, **envp;
    gid_t *groups;
    char *text;
};

static int parse(const struct block *block, const struct parts *parts, struct child_spec *spec)
{
    char *at = parts->text;
    const char *end = at + block->text_size;
    if (take_list(&at, end, parts->argv, block->argc) < 0 ||
        take_list(&at, end, parts->envp, block->envc) < 0)
        return -1;
    spec->argv = parts->argv;
    spec->envp = parts->envp;
    spec->groups = parts->groups;
    spec->cwd = block->has_cwd ? take_text(&at, end) : NULL;
    spec->label = take_text(&at, end);
    if (spec->label == NULL || (block->has_cwd && spec->cwd == NULL))
        return -1;
    take_numbers(block, spec);
    return count_descriptors(block, spec);
}

/* In pages of their own, which are given back as a whole. */
static int map_parts(const struct block *block, struct parts *parts, struct child_spec *spec)
{
    /* same (number): there is room to spare then */
    size_t strings = (size_t)block->argc + 1 + block->envc + 1;
    size_t lists_size = strings * sizeof(char *) + block->group_count * sizeof(gid_t);
    size_t size = lists_size + block->text_size;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    spec->memory = memory;
    spec->memory_size = size;
    parts->argv = (char **)(void *)memory;
    parts->envp = parts->argv + block->argc + 1;
    parts->groups = (gid_t *)(void *)(parts->envp + block->envc + 1);
    parts->text = memory + lists_size;
    return 0;
}

static int read_parts(int memfd, const struct block *block, struct child_spec *spec,
                      struct crown_error *err)
{
    struct parts parts;
    size_t groups_size = block->group_count * sizeof(gid_t);
    if (map_parts(block, &parts, spec) < 0)
        return error_set_errno(err, errno, "map the child's description");
    const struct iovec into[] = {{parts.text, block->text_size}, {parts.groups, groups_size}};
    if (preadv(memfd, into, 2, sizeof(*block)) == (ssize_t)(block->text_size + groups_size) &&
        parse(block, &parts, spec) == 0)
        return 0;
    child_spec_release(spec);
    return error_set(err, ERROR_PROTOCOL, "the child's description makes no sense");
}

int child_spec_read(int memfd, struct child_spec *spec, struct crown_error *err)
{
    struct block block = {0};
    struct stat info;
    if (fstat(memfd, &info) < 0)
        return error_set_errno(err, errno, "read the child's description");
    size_t size = (size_t)info.st_size;
    if (size == 0 || size > SPEC_MAX)
        return error_set(err, ERROR_PROTOCOL, "the child's description has %zu bytes", size);
    memset(spec, 0, sizeof(*spec));
    if (pread(memfd, &block, sizeof(block), 0) == (ssize_t)sizeof(block) && plausible(&block, size))
        return read_parts(memfd, &block, spec, err);
    return error_set(err, ERROR_PROTOCOL, "the child's description makes no sense");
}

void child_spec_release(struct child_spec *spec)
{
    if (spec->memory != NULL) /* same (always): the kernel refuses to take nothing back */
        (void)munmap(spec->memory, spec->memory_size); /* fails for wrong arguments only */
    spec->memory = NULL;
    spec->argv = spec->envp = NULL;
    spec->cwd = spec->label = NULL;
    spec->groups = NULL;
}
