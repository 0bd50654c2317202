/**
 * The file by which a command that lives from term to term reads its epoch: CROWN_EPOCH_FILE.
 */
#ifndef CROWN_CANDIDATE_EPOCH_FILE_H
#define CROWN_CANDIDATE_EPOCH_FILE_H

#include <stdint.h>

#include "base/error.h"

/**
 * Replaces the file, atomically.
 * @param path NULL: does nothing.
 * @return 0, or -1 with `err`: the command must not be told that it leads, for it would read
 * another epoch.
 */
int epoch_file_write(const char *path, uint64_t epoch, struct crown_error *err);

/**
 * The command does not lead: the file is empty. One that cannot be emptied is a warning: what
 * stands there then is an older epoch, which whatever is fenced by it refuses.
 * @param path NULL: does nothing.
 */
void epoch_file_clear(const char *path);

/** @param path NULL: does nothing. */
void epoch_file_remove(const char *path);

#endif
