/* What of hiredis 1.2's hiredis.h and read.h we use, as it is declared there. */
#ifndef HIREDIS_STAND_IN_H
#define HIREDIS_STAND_IN_H

#include <stddef.h>

#define HIREDIS_MAJOR 1
#define HIREDIS_MINOR 2
#define HIREDIS_PATCH 0
#define REDIS_OK 0
#define REDIS_ERR_OOM 5

enum {
    REDIS_REPLY_STRING = 1,
    REDIS_REPLY_ARRAY,
    REDIS_REPLY_INTEGER,
    REDIS_REPLY_NIL,
    REDIS_REPLY_STATUS,
    REDIS_REPLY_ERROR,
    REDIS_REPLY_DOUBLE,
    REDIS_REPLY_BOOL,
    REDIS_REPLY_MAP,
    REDIS_REPLY_SET,
    REDIS_REPLY_ATTR,
    REDIS_REPLY_PUSH,
    REDIS_REPLY_BIGNUM,
    REDIS_REPLY_VERB
};

typedef struct redisReadTask {
    int type;
    long long elements;
    int idx;
    void *obj;
    struct redisReadTask *parent;
    void *privdata;
} redisReadTask;

typedef struct redisReplyObjectFunctions {
    void *(*createString)(const redisReadTask *, char *, size_t);
    void *(*createArray)(const redisReadTask *, size_t);
    void *(*createInteger)(const redisReadTask *, long long);
    void *(*createDouble)(const redisReadTask *, double, char *, size_t);
    void *(*createNil)(const redisReadTask *);
    void *(*createBool)(const redisReadTask *, int);
    void (*freeObject)(void *);
} redisReplyObjectFunctions;

typedef struct redisReader {
    int err;
    char errstr[128];
    char *buf;
    size_t pos, len, maxbuf;
    long long maxelements;
    redisReadTask **task;
    int tasks, ridx;
    void *reply;
    redisReplyObjectFunctions *fn;
    void *privdata;
} redisReader;

typedef struct redisReply {
    int type;
    long long integer;
    double dval;
    size_t len;
    char *str;
    char vtype[4];
    size_t elements;
    struct redisReply **element;
} redisReply;

redisReader *redisReaderCreate(void);
void redisReaderFree(redisReader *reader);
int redisReaderFeed(redisReader *reader, const char *bytes, size_t size);
int redisReaderGetReply(redisReader *reader, void **reply);
void freeReplyObject(void *reply);
long long redisFormatCommandArgv(char **target, int count, const char **words, const size_t *sizes);
void redisFreeCommand(char *bytes);

#endif
