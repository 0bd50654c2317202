#!/bin/bash
# Tries the packages, as far as this machine can; what it cannot try it names, and says why.
#   tools/package/test.sh [PART...]      each is test-PART.sh, or test-PART.sh ARGUMENT; all but test-install.sh without a
#   word; tools/package/parts.sh says which ones a change calls for
# The parts run side by side, since they mostly wait. One that fails gets one more try, alone: a mirror that breaks off, or
# a machine that is busy with the others, says nothing about the packages.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tools/excuses.sh
[ $# -gt 0 ] || set -- deb:bookworm deb:trixie image upgrade arm64 musl clang rocks specs

# What is missing for a part, if anything is.
missing_for() {
    case $1 in deb | install | image | arm64 | specs) ;; *) return ;; esac
    if [ "$(id -u)" != 0 ]; then
        echo "it needs root"
    elif [ "$1" = specs ]; then
        return
    elif ! unshare --mount --pid --fork true 2>/dev/null; then
        echo "it needs mount and PID namespaces"
    elif ! tools/package/debian.sh serves bookworm; then
        echo "it needs a mirror of Debian 12"
    fi
}

[ -z "$(git status --porcelain)" ] || echo "package-test: what is not committed is not tried"

logs=$(mktemp -d /tmp/crown-package-test-XXXXXX)
trap 'rm -rf "$logs"' EXIT
# Leaves what a part said, how it ended, and its seconds: of the clock, and of processors.
run_part() {
    local TIMEFORMAT='%0R s, %0U + %0S s of processors' name=${1%%:*} argument=${1#*:}
    [ "$argument" != "$1" ] || argument=
    local missing
    missing=$(missing_for "$name")
    if [ -n "$missing" ]; then
        echo "  skipped: $missing" >"$logs/$1"
        echo skipped >"$logs/$1.end"
        echo "0 s" >"$logs/$1.seconds"
        return
    fi
    {
        time if "tools/package/test-$name.sh" $argument >"$logs/$1" 2>&1; then echo ok; else echo FAILED; fi >"$logs/$1.end"
    } 2>"$logs/$1.seconds"
}
for part in "$@"; do run_part "$part" & done
wait
for part in "$@"; do
    [ "$(cat "$logs/$part.end")" = FAILED ] && may_be_tried_again "$logs/$part" || continue
    echo "$part: failed beside the others, and is tried once more:"
    cat "$logs/$part"
    run_part "$part"
done
passed=0 failed=0
for part in "$@"; do
    end=$(cat "$logs/$part.end")
    echo "$part: $end in $(cat "$logs/$part.seconds")"
    cat "$logs/$part"
    case $end in ok) passed=$((passed + 1)) ;; FAILED) failed=$((failed + 1)) ;; esac
done
echo "$passed parts passed, $failed failed; $(cat "$logs"/* | grep -c '^  skipped: ') things were skipped, $SECONDS s"
[ "$failed" = 0 ]
