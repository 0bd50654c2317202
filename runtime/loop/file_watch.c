#include "loop/file_watch.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/container.h"
#include "loop/helper.h"

#define EVENTS                                                                                     \
    (IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE |                \
     IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

#define BUCKETS 1024u

struct watched_directory {
    struct list_node link;
    int descriptor; /* of inotify; -1: it was deleted */
    unsigned watches;
};

/* The process's instance, open while there is a watch. */
static struct {
    struct loop_watch ready;
    struct loop *loop;
    struct list directories;
    struct list buckets[BUCKETS]; /* of watches, by their file's name */
    struct list *visited;         /* the bucket that is being told; NULL: none is */
    struct list_node *next;       /* in it: whoever closes this watch moves it on */
    unsigned watches;
    unsigned batch;
} shared;

static struct list *bucket_of(const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at != '\0'; at++)
        hash = hash * 33 + (unsigned char)*at;
    return &shared.buckets[hash % BUCKETS];
}

static const char *event_name(uint32_t mask)
{
    if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        return "created";
    if ((mask & (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF)) != 0)
        return "deleted";
    if ((mask & IN_CLOSE_WRITE) != 0)
        return "closed";
    return (mask & IN_MODIFY) != 0 ? "modified" : "attrib";
}

static struct watched_directory *find_directory(int descriptor)
{
    list_each(node, &shared.directories)
    {
        struct watched_directory *directory = container_of(node, struct watched_directory, link);
        if (directory->descriptor == descriptor)
            return directory;
    }
    return NULL;
}

static void tell(struct file_watch *watch, const char *event)
{
    if (watch->batch == shared.batch && watch->last == event)
        return;
    watch->batch = shared.batch;
    watch->last = event;
    watch->changed(watch, event);
}

/* @param directory NULL: of any. @param name NULL: any file of the bucket. */
static void tell_bucket(struct list *bucket, const struct watched_directory *directory,
                        const char *name, const char *event)
{
    shared.visited = bucket;
    for (struct list_node *node = list_first(bucket); node != NULL; node = shared.next) {
        struct file_watch *watch = container_of(node, struct file_watch, link);
        shared.next = list_next(bucket, node);
        if ((directory == NULL || watch->directory == directory) &&
            (name == NULL || strcmp(watch->name, name) == 0))
            tell(watch, event);
    }
    shared.visited = NULL;
}

static void tell_all(const struct watched_directory *directory, const char *event)
{
    for (unsigned i = 0; i < BUCKETS && shared.watches > 0; i++)
        tell_bucket(&shared.buckets[i], directory, NULL, event);
}

static void take(const struct inotify_event *event)
{
    const char *name = event_name(event->mask);
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        tell_all(NULL, name);
        return;
    }
    struct watched_directory *directory = find_directory(event->wd);
    if (directory == NULL)
        return; /* nobody watches it any more */
    if ((event->mask & IN_IGNORED) != 0)
        directory->descriptor = -1;
    else if (event->len > 0)
        tell_bucket(bucket_of(event->name), directory, event->name, name);
    else if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0)
        tell_all(directory, name);
}

static void read_events(struct loop_watch *ready, unsigned events)
{
    char buffer[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    (void)events;
    ssize_t size;
    shared.batch++;
    while (shared.watches > 0 && (size = read(ready->fd, buffer, sizeof(buffer))) > 0)
        for (char *at = buffer; at < buffer + size && shared.watches > 0;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;
            at += sizeof(*event) + event->len;
            take(event);
        }
}

static int open_shared(struct loop *loop, const char *directory, struct crown_error *err)
{
    assert(shared.watches == 0 || shared.loop == loop);
    if (shared.watches > 0)
        return 0;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return error_set_errno(err, errno, "watch %s: raise fs.inotify.max_user_instances",
                               directory);
    list_init(&shared.directories);
    for (unsigned i = 0; i < BUCKETS; i++)
        list_init(&shared.buckets[i]);
    shared.loop = loop;
    shared.ready.ready = read_events;
    loop_watch(loop, &shared.ready, fd, LOOP_READ);
    return 0;
}

static void close_on_thread(void *work, int given_up)
{
    (void)given_up;
    (void)close(*(int *)work); /* read only */
}

static void closed(void *context, void *work)
{
    (void)context;
    free(work);
}

/* The kernel waits until nobody can be looking at the instance any more: some 10 ms, and more on a
 * busy host. */
static void close_apart(int fd)
{
    static const struct helper_kind kind = {"inotify", close_on_thread, closed, free, false};
    struct crown_error err;
    int *work = malloc(sizeof(*work));
    if (work != NULL)
        *work = fd;
    if (work != NULL && helper_start(shared.loop, &kind, "inotify", work, NULL, &err) != NULL)
        return;
    free(work);
    (void)close(fd); /* as above */
}

static void close_shared(void)
{
    if (shared.watches > 0)
        return;
    int fd = shared.ready.fd;
    loop_unwatch(&shared.ready);
    close_apart(fd);
}

static struct watched_directory *watch_directory(const char *path, struct crown_error *err)
{
    int descriptor = inotify_add_watch(shared.ready.fd, path, EVENTS);
    if (descriptor < 0 && errno == ENOSPC)
        (void)error_set(err, ERROR_SYSTEM, "watch %s: raise fs.inotify.max_user_watches", path);
    else if (descriptor < 0)
        (void)error_set_errno(err, errno, "watch %s", path);
    if (descriptor < 0)
        return NULL;
    struct watched_directory *directory = find_directory(descriptor);
    if (directory != NULL)
        return directory;
    directory = calloc(1, sizeof(*directory));
    if (directory == NULL)
        abort(); /* crash-only, as every allocation of a few bytes */
    directory->descriptor = descriptor;
    list_append(&shared.directories, &directory->link);
    return directory;
}

int file_watch_open(struct loop *loop, struct file_watch *watch, const char *path,
                    struct crown_error *err)
{
    char directory[PATH_MAX], name[PATH_MAX];
    (void)snprintf(name, sizeof(name), "%s", path);
    (void)snprintf(directory, sizeof(directory), "%s", path);
    const char *parent = dirname(directory);
    if (open_shared(loop, parent, err) < 0)
        return -1;
    watch->directory = watch_directory(parent, err);
    if (watch->directory == NULL) {
        close_shared();
        return -1;
    }
    watch->name = strdup(basename(name));
    if (watch->name == NULL)
        abort(); /* as above */
    watch->last = NULL;
    watch->directory->watches++;
    shared.watches++;
    list_append(bucket_of(watch->name), &watch->link);
    return 0;
}

void file_watch_close(struct file_watch *watch)
{
    struct watched_directory *directory = watch->directory;
    if (directory == NULL)
        return;
    if (shared.visited != NULL && shared.next == &watch->link)
        shared.next = list_next(shared.visited, &watch->link);
    list_remove(&watch->link);
    free(watch->name);
    watch->name = NULL;
    watch->directory = NULL;
    shared.watches--;
    if (--directory->watches == 0) {
        if (directory->descriptor >= 0)
            (void)inotify_rm_watch(shared.ready.fd, directory->descriptor); /* it may be gone */
        list_remove(&directory->link);
        free(directory);
    }
    close_shared();
}
