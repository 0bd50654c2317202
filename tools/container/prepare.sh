#!/bin/sh
# In the image: the libraries, among them those that are opened by name, and the user.
set -eu
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ca-certificates \
    libluajit-5.1-2 libev4 libc-ares2 libssl3 lua-cjson libbsd0 libhiredis0.14 libpq5 libcurl4 libmicrohttpd12 >/dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/apt /var/log/dpkg.log
echo 'crown-lua:x:65532:65532::/nonexistent:/usr/sbin/nologin' >>/etc/passwd
echo 'crown-lua:x:65532:' >>/etc/group
# What is writable with a read-only root is mounted here.
install -d -o 65532 -g 65532 -m 700 /run/crown-lua
