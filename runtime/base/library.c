#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* A limit of open files is no reason to install anything. */
static int not_loaded(struct crown_error *err, const char *why, const char *needed)
{
    if (strstr(why, strerror(EMFILE)) != NULL)
        return error_set(err, ERROR_USAGE, "%s (ulimit -n, LimitNOFILE=)", why);
    return error_set(err, ERROR_USAGE, "%s: %s", why, needed);
}

int library_load(const char *file, const char *needed, const struct library_symbol *symbols,
                 size_t count, void *table, struct crown_error *err)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return not_loaded(err, dlerror(), needed);
    for (size_t i = 0; i < count; i++)
        if (dlsym(library, symbols[i].name) == NULL) {
            (void)dlclose(library); /* nothing of it is in use */
            return error_set(err, ERROR_USAGE, "%s is too old: it has no %s: %s", file,
                             symbols[i].name, needed);
        }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        memcpy((char *)table + symbols[i].at, &found, sizeof(found));
    }
    return 0;
}
