#include "bind/nats_codec.h"

#include <string.h>
#include <strings.h>

#define DIGITS 20       /* of the largest sequence: 64 bits */
#define EXACT_DIGITS 15 /* that a double holds, whatever they are */
#define WORDS 6         /* HMSG subject sid reply head-size size */

static struct nats_text text_of(const char *bytes, size_t size)
{
    return (struct nats_text){.bytes = bytes, .size = size};
}

static void skip(struct nats_text *text, size_t size)
{
    text->bytes += size;
    text->size -= size;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

bool nats_is(const struct nats_text *text, const char *word)
{
    return text->size == strlen(word) && memcmp(text->bytes, word, text->size) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool nats_is_digits(const struct nats_text *text)
{
    size_t size = 0;
    while (size < text->size && is_digit(text->bytes[size]))
        size++;
    return size > 0 && size == text->size;
}

bool nats_number(const struct nats_text *text, double *number)
{
    *number = 0;
    if (!nats_is_digits(text) || text->size > DIGITS)
        return false;
    for (size_t i = 0; i < text->size; i++)
        *number = *number * 10 + (text->bytes[i] - '0');
    return true;
}

bool nats_take_word(struct nats_text *rest, char separator, struct nats_text *word)
{
    if (rest->size == 0)
        return false;
    const char *end = memchr(rest->bytes, separator, rest->size);
    size_t size = end != NULL ? (size_t)(end - rest->bytes) : rest->size;
    *word = text_of(rest->bytes, size);
    skip(rest, end != NULL ? size + 1 : size);
    return true;
}

/* @return how many; WORDS + 1: too many. */
static size_t split(struct nats_text line, struct nats_text words[WORDS])
{
    size_t count = 0;
    for (;;) {
        while (line.size > 0 && is_space(line.bytes[0]))
            skip(&line, 1);
        if (line.size == 0 || count > WORDS)
            return count;
        size_t size = 0;
        while (size < line.size && !is_space(line.bytes[size]))
            size++;
        if (count < WORDS)
            words[count] = text_of(line.bytes, size);
        count++;
        skip(&line, size);
    }
}

static bool begins_with_word(const struct nats_text *line, const char *word)
{
    size_t size = strlen(word);
    return line->size > size && strncasecmp(line->bytes, word, size) == 0 &&
           is_space(line->bytes[size]);
}

static bool is_size(const struct nats_text *word, size_t most, size_t *size)
{
    double number;
    if (!nats_number(word, &number) || number > (double)most)
        return false;
    *size = (size_t)number;
    return true;
}

/* MSG subject sid [reply] size, or HMSG subject sid [reply] head-size size. */
static enum nats_progress parse_message(struct nats_heard *heard, size_t sizes, const char *bytes,
                                        size_t have)
{
    struct nats_text words[WORDS];
    size_t head = 0, total = 0, count = split(heard->line, words);
    if (count < 3 + sizes || count > 4 + sizes ||
        !is_size(&words[count - 1], NATS_MOST - 2, &total))
        return NATS_STRANGE;
    if (sizes == 2 && !is_size(&words[count - 2], total, &head))
        return NATS_STRANGE;
    heard->subject = words[1];
    heard->sid = words[2];
    if (count == 4 + sizes)
        heard->reply = words[3];
    if (have < heard->size + total + 2)
        return NATS_MORE;
    heard->message = true;
    heard->head = text_of(bytes + heard->size, head);
    heard->data = text_of(bytes + heard->size + head, total - head);
    heard->size += total + 2;
    return NATS_HEARD;
}

enum nats_progress nats_parse(const char *bytes, size_t size, struct nats_heard *heard)
{
    const char *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    *heard = (struct nats_heard){.message = false};
    if (end == NULL)
        return size > NATS_MOST ? NATS_LONG : NATS_MORE;
    heard->line = text_of(bytes, (size_t)(end - bytes));
    heard->size = heard->line.size + 1;
    if (heard->line.size > 0 && bytes[heard->line.size - 1] == '\r')
        heard->line.size--;
    if (begins_with_word(&heard->line, "MSG"))
        return parse_message(heard, 1, bytes, size);
    if (begins_with_word(&heard->line, "HMSG"))
        return parse_message(heard, 2, bytes, size);
    return NATS_HEARD;
}

/* A line of a head, which "\r\n" ends. */
static bool take_line(struct nats_text *rest, struct nats_text *line)
{
    if (!nats_take_word(rest, '\n', line))
        return false;
    while (line->size > 0 && line->bytes[line->size - 1] == '\r')
        line->size--;
    return true;
}

bool nats_take_header(struct nats_text *rest, struct nats_text *name, struct nats_text *value)
{
    while (take_line(rest, value)) {
        const char *colon = value->size > 0 ? memchr(value->bytes, ':', value->size) : NULL;
        if (colon == NULL || colon == value->bytes)
            continue;
        *name = text_of(value->bytes, (size_t)(colon - value->bytes));
        skip(value, name->size + 1);
        while (value->size > 0 && is_space(value->bytes[0]))
            skip(value, 1);
        return true;
    }
    return false;
}

bool nats_header(const struct nats_text *head, const char *name, size_t size,
                 struct nats_text *value)
{
    struct nats_text rest = *head, one, what;
    bool found = false;
    while (nats_take_header(&rest, &one, &what)) {
        if (one.size != size || strncasecmp(one.bytes, name, size) != 0)
            continue;
        *value = what;
        found = true;
    }
    return found;
}

bool nats_status(const struct nats_text *head, struct nats_text *status)
{
    static const char version[] = "NATS/1.0 ";
    size_t from = sizeof(version) - 1, size = 0;
    if (head->size < from || memcmp(head->bytes, version, from) != 0)
        return false;
    while (from + size < head->size && is_digit(head->bytes[from + size]))
        size++;
    if (size > 0)
        *status = text_of(head->bytes + from, size);
    return size > 0;
}

static bool take(struct nats_text *rest, const char *what)
{
    size_t size = strlen(what);
    while (rest->size > 0 && is_space(rest->bytes[0]))
        skip(rest, 1);
    if (rest->size < size || memcmp(rest->bytes, what, size) != 0)
        return false;
    skip(rest, size);
    return true;
}

bool nats_acknowledged(const struct nats_text *data, double *sequence)
{
    struct nats_text rest = *data, name, digits;
    if (rest.size == 0 || rest.bytes[rest.size - 1] != '}')
        return false;
    if (!take(&rest, "{\"stream\":") || !take(&rest, "\"") || !nats_take_word(&rest, '"', &name) ||
        memchr(name.bytes, '\\', name.size) != NULL || !take(&rest, ",") ||
        !take(&rest, "\"seq\":"))
        return false;
    while (rest.size > 0 && is_space(rest.bytes[0]))
        skip(&rest, 1);
    return nats_take_word(&rest, '}', &digits) && rest.size == 0 && digits.size <= EXACT_DIGITS &&
           nats_number(&digits, sequence) && *sequence > 0;
}
