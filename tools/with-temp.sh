#!/bin/sh
# with-temp.sh COMMAND...: runs it with a user's directory of its own (CROWN_DIRECTORY) and a place for temporary files
# (CROWN_SPEC_TEMP, spec/support/tempdir.lua), and removes both, however it ends.
set -eu
CROWN_DIRECTORY=$(mktemp -d /tmp/crown-user-XXXXXX)
CROWN_SPEC_TEMP=$(mktemp -d /tmp/crown-XXXX)
chmod 755 "$CROWN_SPEC_TEMP" # a server may run as another user
export CROWN_DIRECTORY CROWN_SPEC_TEMP
trap 'rm -rf "$CROWN_DIRECTORY" "$CROWN_SPEC_TEMP"' EXIT
trap 'exit 143' HUP INT TERM
"$@"
