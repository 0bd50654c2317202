/**
 * Files that a library opens for us: whoever opens a pipe waits for somebody to write to it.
 */
#ifndef CROWN_BASE_PLAIN_FILE_H
#define CROWN_BASE_PLAIN_FILE_H

#include "base/error.h"

/**
 * @param what names the file in the message
 * @param path NULL: there is none; one that is missing is left to whoever opens it
 * @return 0, or -1 with ERROR_USAGE when it is there and no plain file
 */
int plain_file_check(const char *what, const char *path, struct crown_error *err);

#endif
