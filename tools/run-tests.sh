#!/bin/bash
# Runs every test, with a line of progress for each part, and ends with the totals alone on a line.
# The whole output of a part is shown when it fails.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

part() { # part NAME COMMAND...: counts what the test frameworks report
    local name=$1 start=$SECONDS good bad
    shift
    printf '%-12s ' "$name"
    "$@" >"$log" 2>&1
    local status=$?
    good=$(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p; s/^([0-9]+) successes.*/\1/p; s/^([0-9]+) seeds passed.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    bad=$(sed -nE 's/^\[  FAILED  \] .*, ([0-9]+) test.*/\1/p; s/^.* ([0-9]+) failures? \/ ([0-9]+) errors?.*/\1 \2/p' "$log" | awk '{ n += $1 + $2 } END { print n + 0 }')
    [ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
    passed=$((passed + good)) failed=$((failed + bad))
    printf '%6d passed %4d failed  %4d s\n' "$good" "$bad" "$((SECONDS - start))"
    [ "$bad" = 0 ] || { sed 's/^/    /' "$log"; }
}

make --no-print-directory -j2 all >"$log" 2>&1 || { cat "$log"; echo "0 passed, 1 failed"; exit 1; }
make --no-print-directory -j2 test-helpers >"$log" 2>&1 || { cat "$log"; echo "0 passed, 1 failed"; exit 1; }
for test in $(find spec/c -name '*_test.c' 2>/dev/null | sort); do
    make --no-print-directory "build/${test%.c}" >"$log" 2>&1 || { cat "$log"; failed=$((failed + 1)); }
done
part "C units" make --no-print-directory -k test-c
grep -qs '^simulate:' mk/*.mk && part "simulation" make --no-print-directory simulate SEEDS=100000
part "specs" make --no-print-directory test-spec
part "faults" make --no-print-directory test-fault
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
