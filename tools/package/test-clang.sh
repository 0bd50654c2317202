#!/bin/bash
# The program built by clang, where all else here is built by gcc.
set -eu
cd "$(dirname "$0")/../.."
make -s CC=clang BUILD=build/clang PROGRAM=build/clang/crown-lua INSTALL_PACKAGES=true CFLAGS=-O1 build/clang/crown-lua >/dev/null
build/clang/crown-lua --version --verbose | grep -x '  built by *clang [0-9.]*, for [a-z0-9]*'
CROWN_DIRECTORY=$PWD/build/clang/directory timeout 60 build/clang/crown-lua lua/examples/hello.lua 1 >build/clang/log 2>&1 || { cat build/clang/log; exit 1; }
echo "  and leads"
