#!/bin/sh
# run-torture.sh STORES FAULTS SEED: hurts candidates on real stores at random (spec/torture), with a user's directory of its own.
set -eu
cd "$(dirname "$0")/.."
program=$PWD/${PROGRAM:-crown-lua}
CROWN_LUA=$program CROWN_TICKER=$PWD/${BUILD:-build}/ticker
export CROWN_LUA CROWN_TICKER
exec tools/with-temp.sh "$program" --log-level warn spec/torture/main.lua "$@"
