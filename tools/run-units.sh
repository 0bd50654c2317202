#!/bin/bash
# run-units.sh NAME UNIT...: runs tests side by side, prints one line for all of them and whatever failed, and adds to the
# totals in build/test, and what failed in short to build/test/failures. A unit is a program of build/spec/c, a spec file,
# simulate:SEEDS[:FIRST], registry:SEEDS[:FIRST], torture:STORE:FAULTS:SEED or fuzz:TARGET:MOST:SEED.
# JOBS: how many at a time. Tests mostly wait, for a lease to end or a server to start.
# SPEC_MOST: how many seconds a spec file may take; one that does not end would hold up all that comes behind it.
# SHUFFLE: the seed of another order, of the units and of the tests in each spec file.
set -u
cd "$(dirname "$0")/.." || exit 2
# shellcheck source=tools/excuses.sh disable=SC1091
. tools/excuses.sh
JOBS=${JOBS:-$((2 * $(nproc) < 4 ? 4 : 2 * $(nproc)))}
export LOGS=${LOGS:-build/test} SHUFFLE SPEC_MOST
times=$LOGS-times
mkdir -p "$LOGS" && touch "$times"

log_of() { echo "$LOGS/${1//[\/: ]/.}"; }

run_unit() { # leaves the unit's output, its exit code, and how many milliseconds it took
    local log start numbers code most=${SPEC_MOST:-600}
    log=$(log_of "$1") start=$(date +%s%N)
    IFS=: read -ra numbers <<<"$1"
    case $1 in
    *_spec.lua) timeout -k 20 "$most" tools/run-spec.sh "$1" -o gtest ${SHUFFLE:+--shuffle-tests --seed="$SHUFFLE"} ;;
    simulate:*) build/simulate --seeds "${numbers[1]}" --first "${numbers[2]:-1}" --jobs 2 ;;
    torture:*) tools/run-torture.sh "${numbers[@]:1}" 1 whole ;;
    fuzz:*) tools/fuzz-unit.sh "${numbers[@]:1}" ;;
    registry:*) luajit spec/sim/registry.lua "${numbers[2]:-1}" "${numbers[1]}" ;;
    *) "$1" ;;
    esac >"$log.out" 2>&1 </dev/null
    code=$?
    [ "$code" != 124 ] || echo "[  ERROR   ] its tests did not end within $most s, or what they have started did not" >>"$log.out"
    echo "$code" >"$log.code"
    echo "$1 $((($(date +%s%N) - start) / 1000000))" >"$log.time"
}
export -f run_unit log_of

# The longest first, so that none is left at the end: as earlier runs tell, or else as large as its file is.
longest_first() {
    awk 'FILENAME == ARGV[1] { known[$1] = $2; next } { print ($1 in known ? known[$1] : 0), $0 }' "$times" - |
        while read -r known unit; do
            [[ $known != 0 || $unit != torture:* ]] || known=60000 # milliseconds
            [ "$known" != 0 ] || known=$(stat -c %s "$unit" 2>/dev/null || echo 1)
            echo "$known $unit"
        done | sort -rn | cut -d' ' -f2-
}

# The order to begin them in.
in_order() {
    [ -n "${SHUFFLE:-}" ] || { longest_first; return; }
    sort | awk -v seed="$SHUFFLE" 'BEGIN { srand(seed) } { print rand(), $0 }' | sort | cut -d' ' -f2-
}

# What cmocka, busted and the simulations report: how many passed, how many did not.
count() {
    awk '/^\[  PASSED  \] [0-9]+ test/ { good += $4 } /^\[  (FAILED |ERROR  ) ?\] [0-9]+ (test|error)/ { bad += $4 }
        /^[0-9]+ seeds passed/ { good += $1 } /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3 } END { print good + 0, bad + 0 }' "$1"
}

# A spec waits for real servers and processes, so a busy machine may make it fail. It is tried again, alone, when its
# neighbours are done, and once more as long as the machine itself stood still meanwhile. It is told as unsteady when it passes
# then. What the first try said is then in *.first.
TRIES_ALONE=3
passes_alone() {
    local log watcher
    log=$(log_of "$1")
    [[ $1 == *_spec.lua && $(cat "$log.code") != 124 ]] || return 1
    for ((try = 1; try <= TRIES_ALONE; try++)); do
        may_be_tried_again "$log.out" || return 1
        [ -e "$log.first" ] || mv "$log.out" "$log.first"
        luajit tools/stillness.lua "$LOGS" >"$log.still" &
        watcher=$!
        run_unit "$1"
        kill "$watcher" && wait "$watcher" 2>/dev/null
        [ "$(cat "$log.code")" != 0 ] || return 0
        [ -s "$log.still" ] || return 1
    done
    return 1
}

# Adds to the file of failures what a unit that failed said of it, short enough for the end of a long run.
tell_at_the_end() {
    {
        echo "  $1:"
        grep -vE '^\[ RUN  |^\[  *OK \]|^\[-|^[0-9TZ:.-]+ (info|debug|warn) |^[[:space:]]*$' "$2" | head -n 12 | cut -c -300 | sed 's/^/    /'
    } >>"$LOGS/failures"
}

# Prints what a unit said but for what went well.
said() { grep -v '^\[ RUN  \|^\[  *OK \]' "$1" | sed 's/^/    /'; }

name=$1 start=$SECONDS good=0 bad=0 broken=() unsteady=()
shift
[ -z "${SHUFFLE:-}" ] || echo "             in the order of SEED=$SHUFFLE"
printf '%-12s ' "$name"
printf '%s\n' "$@" | in_order | xargs -d '\n' -P "$JOBS" -I UNIT bash -c 'run_unit "UNIT"'
for unit in "$@"; do
    log=$(log_of "$unit")
    rm -f "$log.first" "$log.still"
    if [ "$(cat "$log.code")" != 0 ] && passes_alone "$unit"; then unsteady+=("$unit"); fi
    read -r passed failed < <(count "$log.out")
    if [ "$(cat "$log.code")" != 0 ] || { [ "$((passed + failed))" = 0 ] && ! grep -q '^\[ SKIPPED ' "$log.out"; }; then # it crashed, or ran nothing
        [ "$failed" != 0 ] || failed=1
        broken+=("$unit")
    else
        sed -i "\|^$unit |d" "$times" && cat "$log.time" >>"$times"
    fi
    good=$((good + passed)) bad=$((bad + failed))
done
printf '%6d passed %4d failed  %4d s\n' "$good" "$bad" "$((SECONDS - start))"
for unit in ${broken[@]+"${broken[@]}"}; do
    log=$(log_of "$unit")
    echo "    $unit:"
    if [ -e "$log.first" ]; then
        said "$log.first"
        echo "    $unit, tried again, alone:"
        sed 's/^/    /' "$log.still"
    fi
    tell_at_the_end "$unit" "$log.out"
    said "$log.out"
done
for unit in ${unsteady[@]+"${unsteady[@]}"}; do
    echo "    $unit is unsteady: it passed when it was tried again, alone. The first try said:"
    said "$(log_of "$unit").first"
done
echo "$good $bad" >>"$LOGS/totals"
[ "$bad" = 0 ]
