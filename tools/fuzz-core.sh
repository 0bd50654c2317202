#!/bin/bash
# fuzz-core.sh PROGRAM MOST SEED: runs a program of libFuzzer, and says how many inputs it has read. MOST is a number of
# inputs, or of seconds where it ends in an s.
set -eu
program=$1 most=$2 seed=$3
log=$program.log corpus=$program.corpus
cd "$(dirname "$program")"

run() {
    ASAN_OPTIONS=detect_leaks=0 "$program" -seed="$seed" "$@" -print_final_stats=1 "$corpus" >>"$log" 2>&1 ||
        { tail -40 "$log"; exit 1; }
}

rm -rf "$corpus" && mkdir "$corpus" && : >"$log"
if [[ $most = *s ]]; then
    run -max_total_time="${most%s}"
else
    run -runs="$most"
fi
awk -v name="$(basename "$program")" '/number_of_executed_units/ { sum += $2 }
    END { printf "%-12s %d inputs, nothing found\n", name, sum }' "$log"
