# shellcheck shell=bash
# For what runs tests on a machine that may be busy.

# What no second try excuses: it is what the project promises.
PROMISES='ticked at once|share an epoch|the epoch went back|tick on when all|Sanitizer'

# may_be_tried_again LOG: whether what it says may be the fault of a busy machine, or of a mirror that broke off.
may_be_tried_again() { ! grep -qE "$PROMISES" "$1"; }
