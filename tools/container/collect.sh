#!/bin/sh
# Collects the program, each library that it is linked with or opens by name, and what those read, below a directory.
#   collect.sh DIRECTORY
set -eu
to=$1
apt-get install -y -q --no-install-recommends ca-certificates >/dev/null
mkdir -p "$to/usr/bin" "$to/etc/ssl/certs" "$to/proc" "$to/tmp"
install -d -o 65532 -g 65532 -m 700 "$to/run/crown-lua"
cp crown-lua "$to/usr/bin" 2>/dev/null || cp /build/crown-lua "$to/usr/bin"
opened=$(ldconfig -p | awk '/libpq.so.5|libcurl.so.4|libmicrohttpd.so.12|libssl.so.3/ { print $NF }')
# shellcheck disable=SC2086 # a list of words
{
    printf '%s\n' $opened
    ldd "$to/usr/bin/crown-lua" $opened | awk '$2 == "=>" { print $3 } $1 ~ /^\// && NF == 2 { print $1 }' | grep -v ':$'
} | sort -u | while read -r library; do
    mkdir -p "$to${library%/*}"
    cp -L "$library" "$to$library"
done
cp /etc/ssl/certs/ca-certificates.crt "$to/etc/ssl/certs"
echo 'crown-lua:x:65532:65532::/nonexistent:/usr/sbin/nologin' >"$to/etc/passwd"
echo 'crown-lua:x:65532:' >"$to/etc/group"
echo 'hosts: files dns' >"$to/etc/nsswitch.conf"
