#include "descriptors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned descriptors_open(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        abort();
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count - 1; /* the folder's own */
}

unsigned descriptors_mapped(const char *name)
{
    unsigned count = 0;
    char line[1000];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        abort();
    while (fgets(line, sizeof(line), maps) != NULL)
        count += strstr(line, name) != NULL;
    (void)fclose(maps);
    return count;
}
