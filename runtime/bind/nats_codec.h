/**
 * What a NATS server says, cut into lines and messages. Nothing is copied: all texts point into
 * the bytes that were parsed.
 */
#ifndef CROWN_BIND_NATS_CODEC_H
#define CROWN_BIND_NATS_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#define NATS_MOST (1u << 20) /* bytes of a line, or of a message */

struct nats_text {
    const char *bytes; /* NULL: there is none */
    size_t size;
};

struct nats_heard {
    bool message;                         /* else a line */
    struct nats_text line;                /* without its end; of a message the first one */
    struct nats_text subject, sid, reply; /* of a message */
    struct nats_text head, data;
    size_t size; /* bytes of all of it */
};

enum nats_progress { NATS_HEARD, NATS_MORE, NATS_LONG, NATS_STRANGE };

/** Parses what stands first in `bytes`. @return NATS_MORE: it has not come whole yet; NATS_LONG: a
 * line of more than NATS_MOST. */
enum nats_progress nats_parse(const char *bytes, size_t size, struct nats_heard *heard);

/** The last header of a name, in any case of its letters. @return whether there is one. */
bool nats_header(const struct nats_text *head, const char *name, size_t size,
                 struct nats_text *value);

/** Takes the next header off the front. @return whether there was one. */
bool nats_take_header(struct nats_text *rest, struct nats_text *name, struct nats_text *value);

/** The status of "NATS/1.0 100 Idle Heartbeat". @return whether there is one. */
bool nats_status(const struct nats_text *head, struct nats_text *status);

/** Takes a word off the front. @return whether there was one. */
bool nats_take_word(struct nats_text *rest, char separator, struct nats_text *word);

bool nats_is(const struct nats_text *text, const char *word);

bool nats_is_digits(const struct nats_text *text);

/** A number of 64 bits in plain digits, as the nearest that a double holds. @return whether it is
 * one. */
bool nats_number(const struct nats_text *text, double *number);

/** {"stream":"NAME", "seq":7}, and no more than that. @return whether `data` is that, with a
 * sequence that a double holds: others are for who reads all of JSON. */
bool nats_acknowledged(const struct nats_text *data, double *sequence);

#endif
