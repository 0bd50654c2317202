/**
 * Changes of small files that are on the disk when they are done: each may wait for it, however
 * long that takes.
 */
#ifndef CROWN_BASE_DURABLE_H
#define CROWN_BASE_DURABLE_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

#define DURABLE_NUMBER_SIZE 64

/** Atomically, by a temporary file beside it. @return 0, or -1 with `err`. */
int durable_replace(const char *path, const char *text, size_t size, struct crown_error *err);

/**
 * Replaces what a file holds, in its place.
 * @param number of the file, as durable_number says: another one is left alone. @return 0, or -1
 * with `err`.
 */
int durable_write(const char *path, const char *number, const char *text, size_t size,
                  struct crown_error *err);

/** Makes a file that is not there, for its owner alone, or for a group that may write to the
 * directory. @return 0, also where it is there; or -1 with `err`. */
int durable_create(const char *path, struct crown_error *err);

/** @return 0, also where there is none; or -1 with `err`. */
int durable_remove(const char *path, struct crown_error *err);

/** Sets the dates to now, for those who watch it. @return 0, or -1 with `err`. */
int durable_touch(const char *path, struct crown_error *err);

/** A file's number, as /proc/locks has it on most file systems. */
void durable_number(const struct stat *info, char number[DURABLE_NUMBER_SIZE]);

#endif
