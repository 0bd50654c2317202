/**
 * Text of stores, children and peers, character by character: what of it may be shown as it is. A
 * terminal may obey the rest, and what is not UTF-8 is no JSON.
 */
#ifndef CROWN_BASE_CHARACTER_H
#define CROWN_BASE_CHARACTER_H

#include <stdbool.h>
#include <stddef.h>

#define CHARACTER_NONE 0xfffd /* also a character of its own, of three bytes */

struct character {
    size_t length; /* in bytes, 1 at least */
    unsigned code; /* CHARACTER_NONE for a byte that belongs to no character */
    bool shown;    /* neither a control character of ASCII or of the second block (ECMA-48), nor
                      such a byte */
};

/** @param text not empty. */
struct character character_at(const char *text);

#endif
