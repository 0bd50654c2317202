#!/bin/bash
# musl: Debian has no LuaJIT for it, so there is no program. What decides builds with it, and virtual clusters pass.
set -eu
cd "$(dirname "$0")/../.."
echo "  skipped: the program itself with musl, since Debian has neither LuaJIT nor libev for it"
make -s CC=musl-gcc BUILD=build/musl INSTALL_PACKAGES=true CFLAGS=-O1 build/musl/simulate >/dev/null
grep -qa ld-musl build/musl/simulate || { echo "  FAILED: that is not musl"; exit 1; }
build/musl/simulate --seeds 200 | tail -1 | sed "s/^/  with musl, /"
