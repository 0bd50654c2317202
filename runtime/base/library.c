#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int library_load(const char *file, const struct library_symbol *symbols, size_t count, void *table,
                 struct crown_error *err)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return error_set(err, ERROR_USAGE, "%s", dlerror());
    for (size_t i = 0; i < count; i++)
        if (dlsym(library, symbols[i].name) == NULL) {
            (void)dlclose(library); /* nothing of it is in use */
            return error_set(err, ERROR_USAGE, "%s is too old: it has no %s", file,
                             symbols[i].name);
        }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        memcpy((char *)table + symbols[i].at, &found, sizeof(found));
    }
    return 0;
}
