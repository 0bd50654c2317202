/**
 * Secrets in what is shown: logs, errors, titles of processes.
 */
#ifndef CROWN_BASE_REDACT_H
#define CROWN_BASE_REDACT_H

/**
 * Blots out passwords, in place: the secret of `scheme://user:secret@host`, the token of
 * `nats://token@host` unless the scheme is one that has a user there, that of any other word with
 * `user:secret@`, and the values of `password=`, `secret=` and `token=`. The text never grows.
 */
void redact(char *text);

#endif
