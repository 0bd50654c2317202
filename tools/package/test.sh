#!/bin/bash
# Tries the packages, as far as this machine can; what it cannot try it names, and says why.
#   tools/package/test.sh [PART...]      deb, image, upgrade, arm64; all of them without a word
# Needs root, namespaces, and a mirror of Debian. The parts run side by side, since they mostly wait.
set -u
cd "$(dirname "$0")/../.." || exit 2
[ $# -gt 0 ] || set -- deb image upgrade arm64

skip() {
    echo "package-test: skipped: $1"
    echo "0 passed, 0 failed, $2 skipped"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "it needs root" $#
unshare --mount --pid --fork true 2>/dev/null || skip "it needs mount and PID namespaces" $#
[ -z "$(git status --porcelain)" ] || echo "package-test: what is not committed is not tried"

logs=$(mktemp -d /tmp/crown-package-test-XXXXXX)
trap 'rm -rf "$logs"' EXIT
for part in "$@"; do
    {
        start=$SECONDS
        if "tools/package/test-$part.sh" >"$logs/$part" 2>&1; then echo ok; else echo FAILED; fi >"$logs/$part.end"
        echo $((SECONDS - start)) >"$logs/$part.seconds"
    } &
done
wait
passed=0 failed=0
for part in "$@"; do
    echo "$part: $(cat "$logs/$part.end") in $(cat "$logs/$part.seconds") s"
    cat "$logs/$part"
    if [ "$(cat "$logs/$part.end")" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
skipped=$(cat "$logs"/* | grep -c '^  skipped: ')
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
