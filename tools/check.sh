#!/bin/bash
# What one runs after each edit, within a minute: lint of what changed, C units, a thousand virtual clusters, and the specs of
# what changed (spec/suites says which). Changed is what differs from BASE (origin/HEAD), committed or not.
set -u
cd "$(dirname "$0")/.." || exit 2
base=$(git merge-base "${BASE:-origin/HEAD}" HEAD) || exit 2
changed=$( (git diff --name-only --diff-filter=d "$base"; git ls-files -o --exclude-standard) | sort -u)
c_changed=$(grep -E '\.[ch]$' <<<"$changed")
lua_changed=$(grep -E '\.lua$' <<<"$changed")
rm -rf build/test && mkdir -p build/test

step() { # step NAME COMMAND...
    local name=$1 start=$SECONDS
    shift
    "$@" >build/test/step 2>&1 && printf '%-12s ok  %2d s\n' "$name" "$((SECONDS - start))" && return
    echo "$name: failed"
    cat build/test/step
    exit 1
}

units=$(luajit tools/units-of.lua $changed)
c_tests=$(find spec/c -name '*_test.c' | sort | sed 's|^|build/|; s|\.c$||')
step build make --no-print-directory -j"$(nproc)" all test-helpers build/simulate $c_tests
step layers make --no-print-directory layers
[ -z "$c_changed" ] || step clang-format clang-format --dry-run -Werror $c_changed
[ -z "$lua_changed" ] || step luacheck luacheck -q $lua_changed
step sentences make --no-print-directory -s sentences # also of help, which is in Lua
tools/run-units.sh "C and specs" $c_tests simulate:1000 $units
