#include "postgres/libpq.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

struct libpq libpq;

static const struct {
    const char *name;
    size_t at;
} functions[] = {
#define LIBPQ_ROW(name) {#name, offsetof(struct libpq, name)},
    LIBPQ_FUNCTIONS(LIBPQ_ROW)
#undef LIBPQ_ROW
};

int libpq_load(struct crown_error *err)
{
    static bool loaded;
    if (loaded)
        return 0;
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return error_set(err, ERROR_USAGE, "postgres: %s: install libpq5", dlerror());
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL) {
            (void)dlclose(library); /* nothing of it is in use */
            return error_set(err, ERROR_USAGE,
                             "postgres: this libpq knows no %s: version 14 or later is needed",
                             functions[i].name);
        }
        memcpy((char *)&libpq + functions[i].at, &found, sizeof(found));
    }
    loaded = true; /* and stays so as long as the process lives */
    return 0;
}
