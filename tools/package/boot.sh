#!/bin/bash
# Boots a Debian in a directory, with its own systemd, without a network, and runs a command in there.
#   tools/package/boot.sh DIRECTORY COMMAND...
set -eu
root=$1
shift
setsid systemd-nspawn --quiet --directory="$root" --register=no --keep-unit --private-network --console=pipe --boot \
    </dev/null >"$root.console" 2>&1 &
nspawn=$!
end() {
    kill "$nspawn" 2>/dev/null || true
    wait "$nspawn" 2>/dev/null || true
}
trap end EXIT
# shellcheck disable=SC2317 # until calls it
up() {
    init=$(pgrep --parent "$nspawn" | head -1) && [ -n "$init" ] || return 1
    case $(nsenter --target "$init" --all systemctl is-system-running 2>/dev/null) in
    running | degraded) ;;
    *) return 1 ;;
    esac
}
for _ in $(seq 600); do
    ! up || break
    sleep 0.2
done
up || { cat "$root.console"; echo "it does not boot"; exit 1; }
nsenter --target "$init" --all env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
