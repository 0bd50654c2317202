#!/bin/bash
# Runs every test, with a line of progress for each part, tells the slowest, and ends with the totals alone on a line.
# What a part that fails said is shown whole, and in short at the end. SEEDS, REGISTRY_SEEDS: of the simulations, the same each
# time; NEW_SEEDS more that nobody has tried yet, told by their numbers. FUZZ_SECONDS: of nonsense for each client, by the same
# new number, or by seed 1 where no new seeds are wanted. TORTURED: how many of the stores are tortured, another choice with each
# commit; all of them without it. PACKAGES=0: without the specs of what is packaged (tools/package/specs), which package-test has.
set -u
FUZZ_SECONDS=${FUZZ_SECONDS:-60}
cd "$(dirname "$0")/.." || exit 2
rm -rf build/test build/loop-held && mkdir -p build/test
c_tests=$(find spec/c -name '*_test.c' | sort | sed 's|^|build/|; s|\.c$||')
# shellcheck disable=SC2086 # a list of words
if ! make --no-print-directory -j"$(nproc)" all test-helpers build/simulate $c_tests >build/test/build 2>&1; then
    cat build/test/build
    echo "0 passed, 1 failed"
    exit 1
fi

# From $2 on, $3 seeds in parts of $4 that can run side by side.
seeds() { seq "$2" "$4" $(($2 + $3 - 1)) | sed "s/.*/$1:$4:&/"; }

specs() {
    find spec -name '*_spec.lua' | sort | if [ "${PACKAGES:-1}" = 0 ]; then grep -vxFf tools/package/specs; else cat; fi
}

# Which stores are tortured: as many as TORTURED says, drawn by the commit.
tortured() {
    local drawn
    drawn=$(git rev-parse HEAD 2>/dev/null)
    for store in registry file postgres advisory redis etcd nats http mysql s3 consul; do
        echo "$(md5sum <<<"$drawn$store" | cut -c1-8) torture:$store:25:1"
    done | sort | head -n "${TORTURED:-9}" | cut -d' ' -f2
}

new=1 # where no new seeds are wanted
[ "$NEW_SEEDS" = 0 ] || new=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
# shellcheck disable=SC2046,SC2086
{
    tools/run-units.sh "C units" $c_tests
    JOBS=$(nproc) tools/run-units.sh "simulation" "simulate:$SEEDS" $(seeds registry 1 "$REGISTRY_SEEDS" 25)
    if [ "$NEW_SEEDS" != 0 ]; then
        echo "             new seeds from $new on"
        JOBS=$(nproc) tools/run-units.sh "new seeds" "simulate:$NEW_SEEDS:$new" "registry:$(((NEW_SEEDS + 99) / 100)):$new"
    fi
    for proof in simulate-broken exhaust-quick; do
        make --no-print-directory $proof >build/test/broken 2>&1 || { cat build/test/broken; echo "0 1" >>build/test/totals; }
    done
    JOBS=$((4 * $(nproc))) tools/run-units.sh "specs" $(specs) $(tortured)
    # By themselves: they take all the time that there is, and specs wait for real servers.
    JOBS=$((2 * $(nproc))) tools/run-units.sh "nonsense" fuzz:{resp,redis,nats,etcd,postgres,mysql,http,frames,handshake}:"${FUZZ_SECONDS}s:$new"
}

held=$(grep -c 'was held' build/loop-held 2>/dev/null || true)
echo "turns of a loop longer than 20 ms: ${held:-0}, with their stacks in build/loop-held"
echo "the slowest:"
sed -nE 's/^\[ +OK \] (.*) \(([0-9]+)(\.[0-9]*)? ms\)$/\2 \1/p' build/test/*_spec.lua.out | sort -rn | head -10 |
    awk '{ ms = $1; $1 = ""; printf "  %5.1f s %s\n", ms / 1000, $0 }'
if [ -e build/test/failures ]; then # what failed again: of a long run often the end is all that is at hand
    echo "what failed:"
    cat build/test/failures
fi
awk '{ good += $1; bad += $2 } END { printf "%d passed, %d failed\n", good, bad; exit bad != 0 }' build/test/totals
