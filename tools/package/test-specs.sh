#!/bin/bash
# Those specs of `make test` that show what is packaged: the release's tarball, manifests, units, rocks, builds that are the same
# bytes; and places that refuse what the program wants.
set -eu
cd "$(dirname "$0")/../.."
specs=(spec/fault/places_spec.lua)
while read -r spec; do
    [ "$spec" = spec/build/upgrade_spec.lua ] || specs+=("$spec") # a part of its own
done <tools/package/specs
tools/run-units.sh "  specs" "${specs[@]}"
