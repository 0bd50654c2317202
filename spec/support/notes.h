/** What a test has seen happen, line by line, in the order in which it happened. */
#ifndef CROWN_SPEC_NOTES_H
#define CROWN_SPEC_NOTES_H

/** Writes a line down. */
void notes_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Forgets what was written down. */
void notes_forget(void);

/** Fails the test at `file` and `line` unless what was written down are the lines `wanted`, which
 * end with NULL; says both to the descriptor `fd` then. Forgets them. */
void notes_assert(const char *file, int line, int fd, const char *const *wanted);

#endif
