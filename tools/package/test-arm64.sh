#!/bin/bash
# arm64: cross-compiled in a clean Debian, the C units of what decides and the virtual clusters run by qemu.
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
echo "  skipped: the program itself on arm64, since qemu knows neither subreapers nor timers that kill"
# shellcheck disable=SC2016 # expanded in there
tools/package/debian.sh run "$work/root" bash -euc '
    cd /build
    units=$(ls spec/c/{base,election}/*_test.c | sed "s|^|build/|; s|\.c$||")
    make -j"$(nproc)" CC=aarch64-linux-gnu-gcc CFLAGS=-O1 INSTALL_PACKAGES=true crown-lua build/simulate $units >log 2>&1 || { tail -30 log; exit 1; }
    for unit in $units; do
        qemu-aarch64-static "$unit" >log 2>&1 || { tail -30 log; exit 1; }
    done
    echo "  $(wc -w <<<"$units") C units pass on arm64"
    qemu-aarch64-static build/simulate --seeds 100 | tail -1 | sed "s/^/  on arm64, /"'
