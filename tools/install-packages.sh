#!/bin/sh
# Installs what is missing of one or more groups of tools/packages: tools/install-packages.sh GROUP...
# As root, or through sudo; without either it says what to run. Fast when nothing is missing.
set -eu

list=$(dirname "$0")/packages
missing=
for group in "$@"; do
    for package in $(sed -n "s/^$group: //p" "$list"); do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$status" = installed ] || missing="$missing $package"
    done
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    echo "crown-lua: packages are missing; run: sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi

echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # lists of words
$as_root apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 || {
    $as_root apt-get update -q >/dev/null
    $as_root apt-get install -y -q --no-install-recommends $missing >/dev/null
}
