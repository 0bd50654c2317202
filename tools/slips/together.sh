#!/bin/bash
# together.sh WIDTH LIST LOGS: runs the commands of LIST, `SECONDS<tab>COMMAND` in each line, WIDTH at a time, until one fails or
# is not over after its seconds. The others are ended then. Tells for each that ended by itself: its number, exit code and
# milliseconds. What it said is LOGS/NUMBER.
set -u
width=$1 logs=$3
declare -A number started
running=0 failed=0

end_all() { { kill "${!number[@]}"; wait; } 2>/dev/null; }
trap 'end_all; exit 143' TERM

settle() { # waits for one to end
    local pid code
    wait -n -p pid "${!number[@]}"
    code=$?
    echo "${number[$pid]} $code $((($(date +%s%N) - started[$pid]) / 1000000))"
    unset "number[$pid]"
    running=$((running - 1))
    [ "$code" = 0 ] || failed=1
}

i=0
while IFS=$'\t' read -r seconds command; do
    i=$((i + 1))
    while [ "$running" -ge "$width" ] && [ "$failed" = 0 ]; do settle; done
    [ "$failed" = 0 ] || break
    timeout -k 2 "$seconds" sh -c "$command" >"$logs/$i" 2>&1 </dev/null &
    number[$!]=$i started[$!]=$(date +%s%N) running=$((running + 1))
done <"$2"
while [ "$running" -gt 0 ] && [ "$failed" = 0 ]; do settle; done
[ "$running" = 0 ] || end_all
[ "$failed" = 0 ]
