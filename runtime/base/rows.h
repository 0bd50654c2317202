/**
 * Many names, each with a value and a number, apart from the Lua heap: a hash that grows and
 * shrinks by one bucket at a time, so that no call takes long however many names there are. Each
 * name has a place from 1 to their count. A name that goes is filled in by the one at the last
 * place, so a walk from the last place to the first sees all that was there when it began.
 */
#ifndef CROWN_BASE_ROWS_H
#define CROWN_BASE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_NAME_MOST UINT16_MAX  /* bytes */
#define ROWS_VALUE_MOST UINT32_MAX /* bytes */

struct rows;

/** One of them; it is valid until the next change. */
struct row {
    const char *name;
    const char *value;
    size_t name_size;
    size_t value_size;
    uint32_t number;
};

/** @return an empty one, or NULL when memory is out. */
struct rows *rows_new(void);

/** Frees it; NULL is harmless. */
void rows_free(struct rows *rows);

uint32_t rows_count(const struct rows *rows);

/**
 * Takes a name, or changes what it has.
 * @param row sizes at most ROWS_NAME_MOST and ROWS_VALUE_MOST
 * @return 0, or -1 when memory is out: nothing is changed then.
 */
int rows_put(struct rows *rows, const struct row *row);

/** @return whether the name was there. */
bool rows_remove(struct rows *rows, const char *name, size_t size);

/** @return whether the name is there; `found` is filled in then. */
bool rows_get(const struct rows *rows, const char *name, size_t size, struct row *found);

/** @return whether there is such a place; `found` is filled in then. */
bool rows_at(const struct rows *rows, uint32_t place, struct row *found);

/**
 * Drops rows from the last place on. With the last of many the system gets back what they needed,
 * which would stay where others have come later.
 * @param most rows
 * @return whether there are more
 */
bool rows_shrink(struct rows *rows, uint32_t most);

#endif
