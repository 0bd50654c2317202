#!/bin/bash
# Those specs of `make test` that show what is packaged: the release's tarball, manifests, units, rocks, builds that are the same
# bytes, hiredis's versions, and places that refuse what the program wants.
set -eu
cd "$(dirname "$0")/../.."
specs=(spec/fault/places_spec.lua)
for spec in spec/build/*_spec.lua; do
    [ "$spec" = spec/build/upgrade_spec.lua ] || specs+=("$spec") # a part of its own
done
tools/run-units.sh "  specs" "${specs[@]}"
