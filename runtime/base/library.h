/**
 * Libraries that are loaded when they are first needed, since with all that they bring along they
 * would double the time in which every other start of the program is over.
 */
#ifndef CROWN_BASE_LIBRARY_H
#define CROWN_BASE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/** A function, and where its pointer goes in the table. */
struct library_symbol {
    const char *name;
    size_t at;
};

/**
 * Loads a library for the rest of the process's life.
 * @param file "libpq.so.5".
 * @param needed what to do where it is not there: "install libpq5".
 * @param table a struct of function pointers; untouched on failure.
 * @return 0, or -1 with ERROR_USAGE: it is not installed, or lacks a function.
 */
int library_load(const char *file, const char *needed, const struct library_symbol *symbols,
                 size_t count, void *table, struct crown_error *err);

#endif
