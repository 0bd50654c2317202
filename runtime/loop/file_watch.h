/**
 * Watches of files, by one inotify instance for all of them: a user has few (128 is usual), and an
 * application may have thousands of elections. Each directory is watched once.
 */
#ifndef CROWN_LOOP_FILE_WATCH_H
#define CROWN_LOOP_FILE_WATCH_H

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"

struct watched_directory;

/** Embed it; zero-initialise before first use. */
struct file_watch {
    struct list_node link;
    struct watched_directory *directory; /* NULL: closed */
    char *name;                          /* of the file in its directory */
    const char *last;                    /* told in the batch */
    unsigned batch;
    /** From the loop: "created", "modified", "closed", "attrib" or "deleted"; the same one again
     * and again is told once. It may close any watch. */
    void (*changed)(struct file_watch *watch, const char *event);
};

/**
 * Watches a file, which need not be there; its directory must.
 * @param loop the process's one.
 * @param path shorter than PATH_MAX.
 * @param watch with `changed` set; kept where it is until file_watch_close.
 * @return 0, or -1 with `err`.
 */
int file_watch_open(struct loop *loop, struct file_watch *watch, const char *path,
                    struct crown_error *err);
/** Harmless for one that is closed. The last one frees the instance. */
void file_watch_close(struct file_watch *watch);

#endif
