#!/bin/bash
# Prints the parts of package-test that a change calls for. Changed is what differs from BASE (origin/HEAD), and where that is not
# known or is what we are at, from twenty commits ago.
# All parts where packages are made in another way than before, and with NIGHTLY=1. Else one package is built, installed and run;
# and two versions meet in elections where what they keep in a store may have changed.
set -eu
cd "$(dirname "$0")/../.."
base=$(git merge-base "${BASE:-origin/HEAD}" HEAD 2>/dev/null || true)
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse -q --verify HEAD~20 || true); fi
if [ "${NIGHTLY:-0}" = 1 ] || [ -z "$base" ]; then
    changed=debian/
else
    changed=$(git diff --name-only "$base")
fi
touches() { grep -qE "$1" <<<"$changed"; }
if touches '^(debian/|rockspec/|mk/|Makefile|Containerfile|tools/(package/|container/|systemd/|install))'; then
    echo deb:bookworm deb:trixie image upgrade arm64 musl clang rocks specs
elif touches '^lua/(stores|oracles|crown/(election|oracle|register|registry|postgres|redis|etcd|nats|mysql|s3|consul|kubernetes|zookeeper))/'; then
    echo install:bookworm upgrade
else
    echo install:bookworm
fi
