/**
 * Whether a file that `crown-lua file` writes says that this host leads. For lines of a crontab, so
 * without Lua and without a store.
 */
#ifndef CROWN_HOST_LEADER_FILE_H
#define CROWN_HOST_LEADER_FILE_H

#include <stdbool.h>

enum freshness {
    FILE_FRESH,
    FILE_STALE,   /* past its expiry, or not there */
    FILE_FOREIGN, /* neither of ours nor of Choria's: it says nothing of who leads */
};

/**
 * Looks at a file.
 * @param max_age seconds, for a file of Choria's, which names no expiry.
 */
enum freshness fresh_file(const char *path, double max_age);

/** What is said of a foreign file, behind its path. */
#define FILE_IS_FOREIGN "was not written by crown-lua file, nor by choria election file"

/** `crown-lua file --check`. @param argv what follows: FILE [--max-age SECONDS]. @return the exit
 * code: 0 fresh, 1 not, 2 for wrong usage. */
int fresh_main(int argc, char **argv);

#endif
