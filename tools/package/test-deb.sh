#!/bin/bash
# The Debian package, in a clean minimal Debian with a real systemd and a real Postgres: installed, upgraded from the version
# before, removed, purged.    tools/package/test-deb.sh [SUITE]
set -eu
cd "$(dirname "$0")/../.."
suite=${1:-bookworm}
tools/package/debian.sh serves "$suite" || { echo "  skipped: Debian's $suite, which the mirror does not have"; exit 0; }
before=$(tools/package/before.sh)
[ -n "$before" ] || { echo "  skipped: an upgrade, since this clone has no history"; before=HEAD; }
tools/package/deb.sh "$suite" "build/package/$suite" >/dev/null
jobs=()
tools/package/again.sh "$suite" "build/package/$suite" &
jobs+=($!)
tools/package/deb.sh "$suite" "build/package/$suite-before" "$before" '0.0.1~before' >/dev/null &
jobs+=($!)
tarball=$(tools/package/debian.sh tarball "$suite" systemd systemd-sysv postgresql procps)
for job in "${jobs[@]}"; do wait "$job"; done
echo "  built again, elsewhere and with other settings, it is the same bytes"
work=$(mktemp -d /tmp/crown-package-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tools/package/debian.sh unpack "$tarball" "$work/root"
mkdir "$work/root/test"
chmod 777 "$work/root/test"
cp "build/package/$suite"/crown-lua_*.deb "$work/root/test/after.deb"
cp "build/package/$suite-before"/crown-lua_*.deb "$work/root/test/before.deb"
cp tools/package/inside/deb.sh "$work/root/test/test.sh"
cp tools/package/inside/within.sh "$work/root/test/"
# The mirror is not there once it is booted.
tools/package/debian.sh run "$work/root" sh -c '
    apt-get update -q && apt-get install -y -q --download-only --no-install-recommends /test/after.deb' >"$work/apt" 2>&1 || { cat "$work/apt"; exit 1; }
tools/package/boot.sh "$work/root" bash /test/test.sh
