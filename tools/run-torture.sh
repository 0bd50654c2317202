#!/bin/sh
# run-torture.sh STORES FAULTS SEED: hurts candidates on real stores at random (spec/torture), with a user's directory of its own.
set -eu
cd "$(dirname "$0")/.."
program=$PWD/${PROGRAM:-crown-lua}
CROWN_DIRECTORY=$(mktemp -d /tmp/crown-spec-XXXXXX)
CROWN_LUA=$program CROWN_TICKER=$PWD/${BUILD:-build}/ticker
export CROWN_DIRECTORY CROWN_LUA CROWN_TICKER
trap 'rm -rf "$CROWN_DIRECTORY"' EXIT
"$program" --log-level warn spec/torture/main.lua "$@"
