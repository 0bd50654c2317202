#include "candidate/outage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "candidate/env.h"
#include "candidate/state.h"
#include "loop/loop.h"

static bool was_told(const struct outage *outage, const char *message)
{
    for (unsigned i = 0; i < outage->count; i++) {
        if (strcmp(outage->told[i], message) == 0)
            return true;
    }
    return outage->count == OUTAGE_REASONS_MOST;
}

/* @return whether this outage was told with it; what memory cannot keep is told again. */
static bool note(struct outage *outage, const char *message)
{
    if (was_told(outage, message))
        return true;
    char *copy = strdup(message);
    if (copy != NULL)
        outage->told[outage->count++] = copy;
    return false;
}

static struct outage *begun(struct candidate *candidate)
{
    if (candidate->outage == NULL) {
        candidate->outage = calloc(1, sizeof(*candidate->outage));
        if (candidate->outage == NULL)
            abort(); /* crash-only, as every allocation of a few bytes */
        candidate->outage->since_ns = loop_now(candidate->env->loop);
    }
    return candidate->outage;
}

static void tell(struct candidate *candidate, const char *function, const char *message,
                 const char *code)
{
    const struct log_field fields[] = {log_string("function", function),
                                       log_string("error", message), log_string("fault", "usage")};
    bool users = code != NULL && strcmp(code, "usage") == 0; /* same (order): it is symmetric */
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_ORACLE_ERROR, fields,
                   users ? 3 : 2);
}

void outage_report(struct candidate *candidate, const char *function, const char *message,
                   const char *code)
{
    const char *reason = message != NULL ? message : "(no message)";
    struct outage *outage = begun(candidate);
    outage->answers = code != NULL && strcmp(code, "store") == 0;
    if (outage->failure != NULL && strcmp(outage->failure, reason) == 0)
        return;
    free(outage->failure);
    outage->failure = strdup(reason);
    if (!note(outage, reason))
        tell(candidate, function, reason, code);
}

void outage_forget(struct candidate *candidate)
{
    struct outage *outage = candidate->outage;
    if (outage == NULL)
        return;
    for (unsigned i = 0; i < outage->count; i++)
        free(outage->told[i]);
    free(outage->failure);
    free(outage);
    candidate->outage = NULL;
}

void outage_over(struct candidate *candidate)
{
    outage_forget(candidate);
    candidate->answered_ns = loop_now(candidate->env->loop);
}
