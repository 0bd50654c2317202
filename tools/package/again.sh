#!/bin/bash
# Builds the packages again of their source package, in another folder, at another time, by another user with other settings:
# they have to be the same bytes.    tools/package/again.sh SUITE OUT     OUT is what deb.sh has filled
set -eu
cd "$(dirname "$0")/../.."
suite=$1 out=$2
tarball=$(tools/package/deb.sh tarball "$suite")
work=$(mktemp -d /tmp/crown-again-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tools/package/debian.sh unpack "$tarball" "$work/root"
mkdir "$work/root/elsewhere"
cp "$out"/crown-lua_*.tar.xz "$out"/crown-lua_*.dsc "$work/root/elsewhere"
# shellcheck disable=SC2016 # expanded in there
tools/package/debian.sh run "$work/root" bash -eu -c '
    useradd --create-home someone && chown -R someone /elsewhere && cd /elsewhere
    su someone -c "umask 002; export TZ=Asia/Tokyo LC_ALL=C DEB_BUILD_OPTIONS=parallel=1
        dpkg-source -x crown-lua_*.dsc source && cd source && dpkg-buildpackage -b -us -uc" >log 2>&1 || { tail -40 log >&2; exit 1; }'
for package in "$out"/crown-lua*.deb; do
    cmp "$package" "$work/root/elsewhere/${package##*/}"
done
