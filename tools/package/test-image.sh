#!/bin/bash
# Both images of Containerfile, built by buildah; without it, the root file system that the same script makes in a clean
# minimal Debian. Then run in namespaces, as process 1, as nobody, with a read-only root: exit codes, signals, zombies, a
# child's tree.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d /tmp/crown-image-XXXXXX)
root=$work/root
end() {
    [ ! -d "$work/store" ] || tools/package/build-image.sh remove "$work" || true
    rm -rf --one-file-system "$work"
}
trap end EXIT
fail() {
    echo "  FAILED: $*"
    cat "$work"/log* 2>/dev/null
    exit 1
}
directory=$(sed -n 's/^ENV CROWN_DIRECTORY=//p' Containerfile | sort -u)
size() { du -sm --apparent-size --exclude=usr/share/doc --exclude=usr/share/man --exclude=usr/share/locale "$1/" | cut -f1; }
built_by_buildah() {
    tools/package/build-image.sh build "$work" >"$work/log" 2>&1 || fail "buildah does not build Containerfile"
    for target in image scratch; do
        [[ $(tools/package/build-image.sh config "$work" $target) == "65532:65532 [/usr/bin/crown-lua] SIGTERM ["*"CROWN_DIRECTORY=$directory]" ]] ||
            fail "$target is configured otherwise: $(tools/package/build-image.sh config "$work" $target)"
    done
    root=$(readlink "$work/image")
    base=$(size "$work/base")
    echo "  buildah builds both, on a base that was made here"
}
built_without() {
    echo "  skipped: both images by buildah, which is not here, or may not mount here; the script that Containerfile runs makes one"
    tools/package/debian.sh unpack "$(tools/package/debian.sh tarball bookworm procps)" "$root"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
    base=$(size "$root")
    cp tools/container/prepare.sh "$root/prepare.sh"
    tools/package/debian.sh run "$root" /prepare.sh >"$work/log" 2>&1 || fail "prepare.sh"
    rm "$root/prepare.sh"
    strip -o "$root/usr/bin/crown-lua" crown-lua
}
if tools/package/build-image.sh works "$work"; then built_by_buildah; else built_without; fi
more=$(($(size "$root") - base))
echo "  $more MB beyond the base of $base MB"
[ $more -le 25 ] || fail "that is more than 25 MB"

# Becomes a container that runs the program with these words; `background` starts one as process $pid of this machine.
container() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec unshare --mount --pid --fork --kill-child --ipc --uts bash -euc '
        root=$1 directory=$2; shift 2
        mount --bind "$root" "$root"; cd "$root"
        mkdir -p proc dev # as a container runtime makes them
        mount -t proc proc proc; mount --rbind /dev dev
        mount -t tmpfs tmpfs run
        mkdir run/crown-lua; mount -t tmpfs -o mode=2777,gid=65532 tmpfs run/crown-lua # as a kubelet mounts an emptyDir
        mount -o remount,bind,ro "$root"
        exec env -i PATH=/usr/bin:/bin CROWN_DIRECTORY="$directory" CROWN_NODE=pod \
            setpriv --no-new-privs --bounding-set -all,+sys_chroot,+setuid,+setgid --inh-caps -all /usr/sbin/chroot --userspec=65532:65532 . crown-lua "$@"
        ' container "$root" "$directory" "$@"
}
background() {
    container "$@" >"$work/log" 2>&1 &
    unshare=$!
    within 30 child_of_unshare
    pid=$(child_of_unshare)
}
child_of_unshare() { pgrep --parent "$unshare"; }
. tools/package/inside/within.sh
said() { grep -q "$1" "$work/log"; }
below() { pgrep --ns "$pid" --nslist pid --full "$1"; }
gone() { ! below "$1"; }
no_zombies() { ! ps -o stat= -p "$(pgrep --ns "$pid" --nslist pid | tr '\n' ',')1" | grep -q '^Z'; }

code=0
# shellcheck disable=SC2016 # expanded in there
(container run --once job -- sh -c 'test $(id -u) = 65532 && ! touch /x 2>/dev/null && exit 7') >"$work/log" 2>&1 || code=$?
[ "$code" = 7 ] || fail "a command's exit code 7 became $code"
echo "  as nobody, with a read-only root, it ends with its command's exit code"

(container run --once job -- crown-lua status) >"$work/log" 2>&1 || fail "a command's status is refused"
said "^job .*leading" || fail "status does not show who leads"
echo "  status is answered where the directory may be written by everybody, as an emptyDir"

background run job -- sh -c 'trap "echo ended in order; exit 0" TERM INT; echo leads; while :; do sleep 0.1; done'
within 30 said leads
kill -TERM "$pid"
code=0
wait "$unshare" || code=$?
said "ended in order" || fail "SIGTERM did not reach the worker"
[ "$code" = 0 ] || [ "$code" = 143 ] || fail "SIGTERM ended it with $code"
echo "  SIGTERM to process 1 ends the worker in order, and the program with $code"

# shellcheck disable=SC2016 # expanded in there
background run --restart permanent job -- sh -c 'for i in 1 2 3 4 5; do (setsid sleep 0.0$i &); done; setsid sleep 12345 & echo leads; sleep 54321'
within 30 said leads
within 30 below '^sleep 12345$'
first=$(below '^sleep 12345$')
within 30 no_zombies
kill -KILL "$(below '^sleep 54321$')"
replaced() { [ "$(below '^sleep 12345$')" != "$first" ] && [ "$(below '^sleep 12345$' | wc -l)" = 1 ]; }
within 30 replaced
echo "  it reaps orphans, and kills what a dead worker has left before the next one starts"
kill -TERM "$pid"
wait "$unshare" || true

[ -e "$work/scratch" ] || exit 0
root=$(readlink "$work/scratch")
(container run --once job -- crown-lua --version) >"$work/log" 2>&1 || fail "the image from scratch does not run"
said "^crown-lua [0-9]" || fail "the image from scratch runs no command"
(container --version --verbose) >"$work/log" 2>&1 || fail "the image from scratch says no version"
! said "not to be had" || fail "the image from scratch lacks a library"
echo "  the one from scratch, of $(size "$root") MB, runs a command, and has each library"
