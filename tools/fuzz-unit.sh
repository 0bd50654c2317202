#!/bin/bash
# fuzz-unit.sh TARGET MOST SEED: spec/fuzz/wire.lua on the program, or on PROGRAM=, as one test of tools/run-units.sh. MOST is a
# number of inputs, or of seconds where it ends in an s.
set -eu
cd "$(dirname "$0")/.."
count=$(tools/with-temp.sh "./${PROGRAM:-crown-lua}" --log-level error spec/fuzz/wire.lua "$@")
echo "$1, seed $3: $count inputs, nothing found"
[ "$count" -gt 0 ] && echo "1 passed, 0 failed"
