#!/bin/bash
# Tries the packages, as far as this machine can; what it cannot try it names, and says why.
#   tools/package/test.sh [PART...]      each is test-PART.sh, or test-PART.sh ARGUMENT; all of them without a word
# Needs root, namespaces, and a mirror of Debian. The parts run side by side, since they mostly wait.
set -u
cd "$(dirname "$0")/../.." || exit 2
[ $# -gt 0 ] || set -- deb:bookworm deb:trixie image upgrade arm64 musl clang rocks specs

skip() {
    echo "package-test: skipped: $1"
    echo "0 passed, 0 failed, $2 skipped"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "it needs root" $#
unshare --mount --pid --fork true 2>/dev/null || skip "it needs mount and PID namespaces" $#
tools/package/debian.sh serves bookworm || skip "it needs a mirror of Debian 12" $#
[ -z "$(git status --porcelain)" ] || echo "package-test: what is not committed is not tried"

export logs
logs=$(mktemp -d /tmp/crown-package-test-XXXXXX)
trap 'rm -rf "$logs"' EXIT
# Leaves what a part said, how it ended, and its seconds: of the clock, and of processors.
run_part() {
    local TIMEFORMAT='%0R s, %0U + %0S s of processors' name=${1%%:*} argument=${1#*:}
    [ "$argument" != "$1" ] || argument=
    {
        time if "tools/package/test-$name.sh" $argument >"$logs/$1" 2>&1; then echo ok; else echo FAILED; fi >"$logs/$1.end"
    } 2>"$logs/$1.seconds"
}
for part in "$@"; do run_part "$part" & done
wait
passed=0 failed=0
for part in "$@"; do
    echo "$part: $(cat "$logs/$part.end") in $(cat "$logs/$part.seconds")"
    cat "$logs/$part"
    if [ "$(cat "$logs/$part.end")" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
skipped=$(cat "$logs"/* | grep -c '^  skipped: ')
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
