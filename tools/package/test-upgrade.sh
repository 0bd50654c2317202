#!/bin/bash
# The version before and this one in one election, on every store.
set -eu
cd "$(dirname "$0")/../.."
if [ -z "$(tools/package/before.sh)" ]; then
    echo "  skipped: two versions in one election, since this clone has no history"
    exit
fi
CROWN_UPGRADE=all tools/run-spec.sh spec/build/upgrade_spec.lua
