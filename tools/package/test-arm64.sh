#!/bin/bash
# arm64: cross-compiled in a clean Debian; C units and virtual clusters run by qemu.
set -eu
cd "$(dirname "$0")/../.."
tarball=$(ARCHITECTURES=amd64,arm64 VARIANT=essential tools/package/debian.sh tarball bookworm make luajit gcc-aarch64-linux-gnu \
    libc6-dev-arm64-cross qemu-user-static lib{luajit-5.1,ev,c-ares,ssl,bsd,pq,microhttpd,hiredis,curl4-openssl,cmocka}-dev:arm64 \
    lua-cjson-dev:arm64)
work=$(mktemp -d /tmp/crown-arm64-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tools/package/debian.sh unpack "$tarball" "$work/root"
mkdir -p "$work/root/build"
git archive HEAD | tar -x -C "$work/root/build"
echo "  skipped: on arm64 the program itself and the C units with a whole supervisor, since qemu lets nobody become a subreaper"
echo "  skipped: on arm64 the C units of signal mode, of titles and of wills, since qemu shows its own signal handlers and words, and keeps no limit of memory"
# shellcheck disable=SC2016 # expanded in there
tools/package/debian.sh run "$work/root" bash -euc '
    cd /build
    around_supervisor=$(cd spec/c/process && grep -l "\"stage.h\"" *.h)
    units=$(grep -LE "SUBREAPER|\"(stage.h$(printf "|%s" $around_supervisor))\"" spec/c/*/*_test.c | grep -vE "/(signal_mode|title|will)_test.c" | sed "s|^|build/|; s|\.c$||")
    make -j"$(nproc)" CC=aarch64-linux-gnu-gcc CFLAGS=-O1 INSTALL_PACKAGES=true crown-lua build/simulate $units >log 2>&1 || { tail -30 log; exit 1; }
    for unit in $units; do
        qemu-aarch64-static "$unit" >log 2>&1 || { tail -30 log; exit 1; }
    done
    echo "  $(wc -w <<<"$units") of $(ls spec/c/*/*_test.c | wc -l) C units pass on arm64"
    qemu-aarch64-static build/simulate --seeds 100 | tail -1 | sed "s/^/  on arm64, /"'
