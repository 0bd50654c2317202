/**
 * Whether a file that `crown-lua file` writes says that this host leads. For lines of a crontab, so
 * without Lua and without a store.
 */
#ifndef CROWN_HOST_LEADER_FILE_H
#define CROWN_HOST_LEADER_FILE_H

#include <stdbool.h>

/**
 * @param max_age seconds, for a file that names no expiry.
 * @return whether there is such a file and it is not past its own expiry.
 */
bool fresh_file(const char *path, double max_age);

/** `crown-lua file --check`. @param argv what follows: FILE [--max-age SECONDS]. @return the exit
 * code: 0 fresh, 1 not, 2 for wrong usage. */
int fresh_main(int argc, char **argv);

#endif
