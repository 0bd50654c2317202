/**
 * hiredis's codec, as every version of it has it: before 1.0 the functions that make replies count
 * in int, and there are fewer kinds of replies. Nothing else includes its headers.
 */
#ifndef CROWN_BIND_REDIS_CODEC_H
#define CROWN_BIND_REDIS_CODEC_H

#include <hiredis/hiredis.h>
#include <stddef.h>

/** Writes the version of hiredis into `text`. */
void redis_library(char *text, size_t size);

/** What a reply is to a reader of ours. */
enum redis_kind { REDIS_NOTHING, REDIS_NUMBER, REDIS_LIST, REDIS_FAILURE, REDIS_TEXT };

/** @return the kind; what RESP3 has besides is a list, a number or a text. */
enum redis_kind redis_kind_of(const redisReply *reply);

/**
 * @param elements counts those of the reply that is being read; zero it for the next one. It lives
 * as long as the reader.
 * @return a reader that refuses replies of more than a hundred thousand elements; NULL when memory
 * is out.
 */
redisReader *redis_reader_new(size_t *elements);

#endif
