#include "base/plain_file.h"

#include <stddef.h>
#include <sys/stat.h>

int plain_file_check(const char *what, const char *path, struct crown_error *err)
{
    struct stat found;
    if (path == NULL || stat(path, &found) < 0 || S_ISREG(found.st_mode))
        return 0;
    return error_set(err, ERROR_USAGE, "%s %.200s is no plain file", what, path);
}
