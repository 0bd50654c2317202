#!/bin/bash
# A clean minimal Debian, made by mmdebstrap and kept as a tarball: made anew only when its packages change or it is a week old.
#   tools/package/debian.sh tarball SUITE PACKAGE...     prints the path of the tarball
#   tools/package/debian.sh serves SUITE                 whether a mirror has it
#   tools/package/debian.sh unpack TARBALL DIRECTORY     into a directory that is not there yet
#   tools/package/debian.sh run DIRECTORY COMMAND...     in namespaces of its own, with /proc, /dev and this machine's network
# As root, from the mirror that this machine's apt uses.
set -eu
kept=${CROWN_KEPT:-build/package/debian}

# The mirror of this machine's own Debian, else Debian's.
mirror() {
    # shellcheck disable=SC2016 # apt expands it
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n 's|/debian/*$|/debian|p' | head -1 | grep . || echo http://deb.debian.org/debian
}

serves() {
    local file result=0
    file=$(mktemp /tmp/crown-release-XXXXXX)
    /usr/lib/apt/apt-helper -qq download-file "$(mirror)/dists/$1/InRelease" "$file" >/dev/null 2>&1 || result=1
    rm -f "$file"
    return $result
}

tarball() {
    local suite=$1 packages key path new
    shift
    packages=$(printf '%s,' "$@")
    key=$(printf '%s' "$suite $packages ${ARCHITECTURES:-}" | sha256sum | cut -c1-12)
    path=$kept/$suite-$key.tar new=$kept/new-$$.tar
    mkdir -p "$kept"
    if [ -z "$(find "$path" -mtime -7 2>/dev/null)" ]; then
        echo "installing a minimal Debian ($suite) into $path, nothing of it into this machine:${*:+ $*}" >&2
        mmdebstrap --quiet --variant="${VARIANT:-minbase}" --dpkgopt=force-unsafe-io ${ARCHITECTURES:+--architectures="$ARCHITECTURES"} \
            ${packages:+--include="${packages%,}"} "$suite" "$new" "$(mirror)" >&2
        mv "$new" "$path"
    fi
    echo "$path"
}

unpack() {
    mkdir "$2"
    tar --numeric-owner -xf "$1" -C "$2"
}

run() {
    local root=$1
    shift
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child --ipc --uts bash -eu -c '
        root=$1; shift
        mount --bind "$root" "$root"; cd "$root"
        mount -t proc proc proc
        mount --rbind /dev dev
        mount -t tmpfs tmpfs run
        [ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf etc/resolv.conf
        exec chroot . env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive "$@"' in-debian "$root" "$@"
}

"$@"
