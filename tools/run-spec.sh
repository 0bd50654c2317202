#!/bin/sh
# run-spec.sh FILE [BUSTED'S OPTIONS]: runs one spec file on the program, by itself: what it finds in the user's directory is
# its own, so that several can run side by side.
set -eu
cd "$(dirname "$0")/.."
program=$PWD/${PROGRAM:-crown-lua}
CROWN_LUA=$program CROWN_TICKER=$PWD/${BUILD:-build}/ticker
CROWN_LOOP_HELD=${CROWN_LOOP_HELD:-$PWD/${BUILD:-build}/loop-held} # docs/loop.md
CROWN_TEST_PATIENCE=${CROWN_TEST_PATIENCE:-4} # several files run side by side
export CROWN_LUA CROWN_TICKER CROWN_LOOP_HELD CROWN_TEST_PATIENCE
# With --lua busted would split a --filter at its spaces.
exec tools/with-temp.sh "$program" "$(command -v busted)" --ignore-lua --run=default "$@"
