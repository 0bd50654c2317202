#include "base/character.h"

#define LAST_CODE 0x10ffff

static bool goes_on(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* @return how many bytes a character has that begins so; 0 where none does. */
static size_t length_by(unsigned char first)
{
    if (first < 0x80)
        return 1;
    return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Of a text that a shorter one would do for, and of halves of pairs (UTF-16), there are none. */
static bool is_character(unsigned code, size_t length)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[length] && code <= LAST_CODE && (code < 0xd800 || code > 0xdfff);
}

struct character character_at(const char *text)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const struct character none = {.length = 1, .code = CHARACTER_NONE, .shown = false};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = length_by(bytes[0]);
    if (length == 0)
        return none;
    unsigned code = bytes[0] & mask[length];
    for (size_t i = 1; i < length; i++) {
        if (!goes_on(bytes[i])) /* nor does the text's end */
            return none;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    if (!is_character(code, length))
        return none;
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    return (struct character){.length = length, .code = code, .shown = !control};
}
