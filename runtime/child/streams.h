/**
 * A command's standard streams, as its options want them: inherited, nowhere, a file, or line by
 * line to the log.
 */
#ifndef CROWN_CHILD_STREAMS_H
#define CROWN_CHILD_STREAMS_H

#include "base/error.h"
#include "child/capture.h"
#include "child/options.h"
#include "child/tail.h"
#include "process/child_spec.h"

/** Embed it; zero-initialise before first use. */
struct streams {
    const char *name;          /* of the election, for the log */
    char *const *fields;       /* further ones, as of child_options; NULL: none */
    struct tail *tail;         /* of what goes to the log; NULL: none is kept */
    struct capture capture[3]; /* of stdout and stderr, where they go to the log */
};

/**
 * Opens what the command's streams need and enters it into `spec`; once the command was started,
 * streams_hand_over closes what is its own from then on.
 * @param name must outlive the streams, and so must `tail`, which begins anew. `tail` may be
 * NULL.
 * @return 0, or -1 with `err`; hand over then too.
 */
int streams_open(struct streams *streams, struct loop *loop, const char *name,
                 const struct child_options *options, struct tail *tail, struct child_spec *spec,
                 struct crown_error *err);
void streams_hand_over(struct child_spec *spec);

/** Logs what was written up to now, and reads no more. */
void streams_finish(struct streams *streams);

#endif
