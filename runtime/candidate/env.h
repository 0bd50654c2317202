/**
 * What is handed in: all that a candidate knows of the process it lives in. host/ fills it, every
 * candidate of the runtime holds the same one.
 */
#ifndef CROWN_CANDIDATE_ENV_H
#define CROWN_CANDIDATE_ENV_H

#include <stdbool.h>
#include <stdint.h>

struct candidates;
struct children;
struct deadmen;
struct journal;
struct loop;
struct lua_vm;
struct starts;
struct telemetry;

struct candidate_env {
    struct loop *loop;
    struct lua_vm *lua;
    struct children *children;
    struct telemetry *telemetry;
    struct journal *journal;
    struct deadmen *deadmen;
    struct candidates *candidates;
    struct starts *starts;
    const char *node; /* this candidate's name */
    /* While a candidate tells of an event: what that is about. */
    struct {
        bool leader;   /* the leader, and not a term of ours */
        uint64_t lost; /* the end of our term with this epoch; else 0 */
    } telling;
    bool stopping; /* the runtime was told to end: no election begins any more */

    /** The runtime does not end while an election holds it; each `true` is followed by a `false`.
     */
    void (*hold)(struct candidate_env *env, bool on);
    /** An election is in another phase: who shows it hears soon. */
    void (*changed)(struct candidate_env *env);
    /** The program's exit code, for when the last election has ended. */
    void (*exit_code)(struct candidate_env *env, int code);
};

#endif
