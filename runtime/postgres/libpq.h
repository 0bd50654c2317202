/**
 * libpq, loaded when the first Postgres URL is read (base/library.h says why).
 */
#ifndef CROWN_POSTGRES_LIBPQ_H
#define CROWN_POSTGRES_LIBPQ_H

#include <libpq-fe.h>

#include "base/error.h"

#define LIBPQ_FUNCTIONS(X)                                                                         \
    X(PQbackendPID)                                                                                \
    X(PQcancel)                                                                                    \
    X(PQclear)                                                                                     \
    X(PQcmdTuples)                                                                                 \
    X(PQconnectPoll)                                                                               \
    X(PQconnectStartParams)                                                                        \
    X(PQconninfo)                                                                                  \
    X(PQconninfoFree)                                                                              \
    X(PQconninfoParse)                                                                             \
    X(PQconsumeInput)                                                                              \
    X(PQdb)                                                                                        \
    X(PQenterPipelineMode)                                                                         \
    X(PQerrorMessage)                                                                              \
    X(PQescapeIdentifier)                                                                          \
    X(PQfinish)                                                                                    \
    X(PQflush)                                                                                     \
    X(PQfname)                                                                                     \
    X(PQfreeCancel)                                                                                \
    X(PQfreemem)                                                                                   \
    X(PQftype)                                                                                     \
    X(PQgetCancel)                                                                                 \
    X(PQgetResult)                                                                                 \
    X(PQgetisnull)                                                                                 \
    X(PQgetlength)                                                                                 \
    X(PQgetvalue)                                                                                  \
    X(PQgssEncInUse)                                                                               \
    X(PQhost)                                                                                      \
    X(PQisBusy)                                                                                    \
    X(PQlibVersion)                                                                                \
    X(PQnfields)                                                                                   \
    X(PQnotifies)                                                                                  \
    X(PQntuples)                                                                                   \
    X(PQpipelineSync)                                                                              \
    X(PQpass)                                                                                      \
    X(PQport)                                                                                      \
    X(PQresStatus)                                                                                 \
    X(PQresultErrorField)                                                                          \
    X(PQresultStatus)                                                                              \
    X(PQsendPrepare)                                                                               \
    X(PQsendQueryParams)                                                                           \
    X(PQsendQueryPrepared)                                                                         \
    X(PQsetNoticeProcessor)                                                                        \
    X(PQsetSingleRowMode)                                                                          \
    X(PQsetnonblocking)                                                                            \
    X(PQsocket)                                                                                    \
    X(PQsslInUse)                                                                                  \
    X(PQsslStruct)                                                                                 \
    X(PQstatus)                                                                                    \
    X(PQtransactionStatus)

/** The functions, by their own names: `libpq.PQstatus(conn)`. All NULL before libpq_load. */
struct libpq {
#define LIBPQ_FIELD(name) __typeof__(name) *name;
    LIBPQ_FUNCTIONS(LIBPQ_FIELD)
#undef LIBPQ_FIELD
};
extern struct libpq libpq;

/** Loads the library, once. @return 0, or -1 with ERROR_USAGE: it is not installed, or too old for
 * pipeline mode (before PostgreSQL 14). */
int libpq_load(struct crown_error *err);

#endif
