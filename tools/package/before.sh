#!/bin/sh
# Prints the version before this one: the newest tag of a release, else a fixed commit; nothing where the history has neither.
#   tools/package/before.sh [package]    one that has a Debian package of its own
set -eu
fixed=789e2c6
[ "${1:-}" != package ] || fixed=7364598
newest=$(git tag --list 'v[0-9]*' --sort=-version:refname --merged HEAD~1 2>/dev/null | head -1)
if [ -n "$newest" ]; then
    echo "$newest"
elif git merge-base --is-ancestor "$fixed" HEAD 2>/dev/null; then
    echo "$fixed"
fi
