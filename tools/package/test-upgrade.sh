#!/bin/bash
# The version before and this one in one election, on every store, some side by side: an empty store is sat out for a while.
set -eu
cd "$(dirname "$0")/../.."
if [ -z "$(tools/package/before.sh)" ]; then
    echo "  skipped: two versions in one election, since this clone has no history"
    exit
fi
logs=$(mktemp -d /tmp/crown-upgrade-XXXXXX)
trap 'rm -rf "$logs"' EXIT
parts=5 jobs=() bad=0
for part in $(seq $parts); do
    CROWN_UPGRADE=$part/$parts tools/run-spec.sh spec/build/upgrade_spec.lua -o gtest >"$logs/$part" 2>&1 &
    jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job" || bad=1; done
sed -n 's/^\[ *OK *\] .* the version before and this one \(.*\) (.*/  they \1/p' "$logs"/* | sort
[ $bad = 0 ] || grep -hv '^\[ RUN\|^\[ *OK' "$logs"/*
exit $bad
