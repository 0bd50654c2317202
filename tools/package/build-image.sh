#!/bin/bash
# Builds both images of Containerfile by buildah, in a store of its own, and mounts them. Where no registry is, a minimal
# Debian made here stands for the base image.
#   tools/package/build-image.sh works DIRECTORY     whether buildah is there, and may make images
#   tools/package/build-image.sh build DIRECTORY     DIRECTORY/base, /image and /scratch are then their root file systems
#   tools/package/build-image.sh config DIRECTORY TARGET     prints user, entry point, stop signal and environment of `image` or `scratch`
#   tools/package/build-image.sh remove DIRECTORY
set -eu
cd "$(dirname "$0")/../.."
what=$1 to=$2 target=${3:-}
BASE=docker.io/library/debian:12-slim

in_store() { buildah --root "$to/store" --runroot "$to/run" "$@"; }

works() {
    {
        command -v buildah && in_store from --name trial scratch && in_store mount trial && in_store rm trial
    } >/dev/null 2>&1
}

# mount IMAGE NAME
mount_image() {
    in_store from --quiet --pull=never --name "$2" "$1" >/dev/null
    ln -s "$(in_store mount "$2")" "$to/$2"
}

build_image() {
    in_store build --quiet --isolation chroot --pull=never --layers --tag "$1" "${@:2}" "$to/context" >&2
}

build() {
    mkdir -p "$to/context"
    in_store from --quiet --name made scratch >/dev/null
    in_store add --quiet made "$(tools/package/debian.sh tarball bookworm procps)" / >/dev/null
    # as in the registry's slim image, nothing of apt's and no documents
    local made
    made=$(in_store mount made)
    rm -rf "$made"/var/lib/apt/lists/* "$made"/var/cache/apt/* "$made"/usr/share/{doc,man,locale}/*
    in_store commit --quiet made "$BASE" >/dev/null
    git archive HEAD | tar -x -C "$to/context"
    # What was built before, for another machine, must not get in.
    echo "for another machine" >"$to/context/crown-lua"
    touch -d "+1 day" "$to/context/crown-lua"
    build_image crown-lua-scratch --target scratch
    build_image crown-lua
    mount_image "$BASE" base
    mount_image crown-lua image
    mount_image crown-lua-scratch scratch
}

config() {
    [ "$target" = scratch ] && image=crown-lua-scratch || image=crown-lua # "scratch" is the empty image's name
    in_store inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.StopSignal}} {{.OCIv1.Config.Env}}' "$image"
}

remove() {
    in_store umount --all >/dev/null 2>&1 || true
    in_store rm --all >/dev/null 2>&1 || true
    in_store rmi --all --force >/dev/null 2>&1 || true
}

"$what"
