#!/bin/sh
# status-pictures.sh [always]: takes the pictures of the status page in docs/figures where the page has changed since they were
# taken; beside them is a sum of the files that make it. On a machine without a browser or a Redis it says so, and they stay.
set -eu
cd "$(dirname "$0")/.."
program=$PWD/${PROGRAM:-crown-lua}
kept=docs/figures/status-pictures.sum
sum=$(cat lua/crown/web/*.lua tools/status-pictures.lua | sha256sum)
if [ "${1:-}" != always ] && [ "$(cat $kept 2>/dev/null)" = "$sum" ]; then exit 0; fi

for needed in chromium chromedriver redis-server; do
    command -v $needed >/dev/null && continue
    echo "status-pictures: the page has changed, and its pictures stay: there is no $needed (make status-pictures installs it)" >&2
    exit 0
done
make --no-print-directory -s all
tools/with-temp.sh env CROWN_LUA="$program" "$program" tools/status-pictures.lua docs/figures
echo "$sum" > $kept
