#!/bin/bash
# The Debian package of what is committed, in a clean minimal Debian: installed with what it depends on, and run in an election.
#   tools/package/test-install.sh [SUITE]
set -eu
cd "$(dirname "$0")/../.."
suite=${1:-bookworm}
tools/package/deb.sh "$suite" "build/package/$suite" >/dev/null
tarball=$(tools/package/debian.sh tarball "$suite" procps)
work=$(mktemp -d /tmp/crown-install-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tools/package/debian.sh unpack "$tarball" "$work/root"
cp "build/package/$suite"/crown-lua_*.deb "$work/root/crown-lua.deb"
# shellcheck disable=SC2016 # expanded in there
tools/package/debian.sh run "$work/root" sh -eu -c '
    apt-get update -q && apt-get install -y -q --no-install-recommends /crown-lua.deb
    crown-lua run --oracle file:/tmp/locks job -- sh -c "echo worked in epoch \$CROWN_EPOCH"
    apt-get purge -y -q crown-lua' >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -qx 'worked in epoch 1' "$work/log" || { cat "$work/log"; exit 1; }
echo "  Debian's $suite installs it, it elects a leader there, and Debian takes it away again"
