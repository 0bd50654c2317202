#!/bin/sh
# Prints the version before this one: the newest tag of a release, else a fixed commit; nothing where the history has neither.
#   tools/package/before.sh [SUITE]      one that builds with the libraries of that Debian
set -eu
fixed=789e2c6
[ "${1:-bookworm}" = bookworm ] || fixed=f2388c7 # the first that hiredis 1 builds
newest=$(git tag --list 'v[0-9]*' --sort=-version:refname --merged HEAD~1 2>/dev/null | head -1)
if [ -n "$newest" ]; then
    echo "$newest"
elif git merge-base --is-ancestor "$fixed" HEAD 2>/dev/null; then
    echo "$fixed"
fi
