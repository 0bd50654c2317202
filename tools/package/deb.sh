#!/bin/bash
# Builds the Debian package of what is committed in a clean minimal Debian, and lets lintian judge it.
#   tools/package/deb.sh SUITE OUT [COMMIT VERSION]      that commit, as VERSION
#   tools/package/deb.sh tarball SUITE                   prints the path of the Debian in which it builds
# OUT gets crown-lua_…deb, crown-lua-dbgsym_…deb, the source package and lintian's word.
set -eu
cd "$(dirname "$0")/../.."
# What the build needs, and lintian, are in the tarball: so every build begins with the same Debian.
tarball() {
    local needs
    needs=$(sed -n '/^Build-Depends:/,/^[A-Z]/{s/^Build-Depends://;/^[A-Z]/d;s/debhelper-compat[^,]*/debhelper/;s/,/ /g;p}' debian/control)
    # shellcheck disable=SC2086 # a list of words
    VARIANT=buildd tools/package/debian.sh tarball "$1" $needs lintian
}
if [ "$1" = tarball ]; then
    tarball "$2"
    exit
fi
suite=$1 out=$2 commit=${3:-HEAD} version=${4:-}
# Of the same sources, nothing is built again.
of=$(git rev-parse "$commit:" HEAD:tools/package/deb.sh | tr '\n' ' ')$version
if [ "$of" = "$(cat "$out/of" 2>/dev/null)" ]; then
    ls "$out"/*.deb
    exit
fi
tarball=$(tarball "$suite")
work=$(mktemp -d /tmp/crown-deb-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tools/package/debian.sh unpack "$tarball" "$work/root"
echo "building the package in there; nothing is installed on this machine" >&2
source=$work/root/build/crown-lua
mkdir -p "$source"
git archive "$commit" | tar -x -C "$source"
[ -z "$version" ] || sed -i "1s/(.*)/($version)/" "$source/debian/changelog"
# shellcheck disable=SC2016 # expanded in there
tools/package/debian.sh run "$work/root" bash -eu -c '
    useradd --create-home builder && chown -R builder /build && cd /build/crown-lua
    options=parallel=$(nproc)
    [ "$1" = HEAD ] || options="$options noopt nocheck noautodbgsym" # only to be upgraded
    su builder -c "DEB_BUILD_OPTIONS=\"$options\" dpkg-buildpackage -us -uc" >/build/log 2>&1 || { tail -40 /build/log >&2; exit 1; }
    [ "$1" = HEAD ] || exit 0 # what is out is out
    su builder -c "lintian --fail-on error,warning --display-info ../crown-lua_*.changes" >/build/lintian 2>&1 ||
        { cat /build/lintian >&2; exit 1; }' build "$commit"
mkdir -p "$out"
rm -f "$out"/crown-lua* "$out"/of "$out"/lintian
cp "$work"/root/build/crown-lua?*.* "$work/root/build/log" "$out"
[ "$commit" != HEAD ] || cp "$work/root/build/lintian" "$out"
echo "$of" >"$out/of"
ls "$out"/*.deb
