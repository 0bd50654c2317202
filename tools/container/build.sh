#!/bin/sh
# In the container that builds: makes /build/crown-lua.
set -eu
cd /build
apt-get update -q
# shellcheck disable=SC2046 # a list of words
apt-get install -y -q --no-install-recommends $(sed -n 's/^build: //p' tools/packages) >/dev/null
make -j"$(nproc)" crown-lua INSTALL_PACKAGES=true
strip crown-lua
