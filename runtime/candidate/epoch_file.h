/**
 * The file by which a command that lives from term to term reads its epoch: CROWN_EPOCH_FILE.
 */
#ifndef CROWN_CANDIDATE_EPOCH_FILE_H
#define CROWN_CANDIDATE_EPOCH_FILE_H

#include <stdint.h>

/**
 * Replaces the file, atomically. One that cannot be written is a warning: what stands there then is
 * an older epoch, which whatever is fenced by it refuses.
 * @param path NULL: does nothing.
 * @param epoch 0: not leading; the file is empty.
 */
void epoch_file_write(const char *path, uint64_t epoch);

/** @param path NULL: does nothing. */
void epoch_file_remove(const char *path);

#endif
