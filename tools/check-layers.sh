#!/bin/sh
# Checks every #include of runtime/ against runtime/LAYERS: own headers by folder, third-party ones by their owners.
set -eu
cd "$(dirname "$0")/.."
for file in runtime/*.c runtime/*/*.c runtime/*/*.h; do
    folder=$(basename "$(dirname "$file")")
    [ "$folder" != runtime ] || folder=main
    sed -nE 's/^#include [<"]([^>"]+)[>"].*/\1/p' "$file" | sed "s|^|$folder $file |"
done | awk '
    NR == FNR {
        if ($0 ~ /^#/ || NF == 0) next
        name = $1; sub(/:$/, "", name)
        if (name ~ /^@/) { owner[substr(name, 2)] = " " substr($0, index($0, ":") + 1) " " ; next }
        may[name] = " " name " " substr($0, index($0, ":") + 1) " "; next
    }
    {
        folder = $1; file = $2; included = $3; top = included; sub(/\/.*/, "", top)
        if (top in may && included ~ /\//) {
            if (index(may[folder], " " top " ") == 0) { print file ": " folder " may not include " included; bad = 1 }
        } else {
            for (header in owner)
                if (included == header || top == header)
                    if (index(owner[header], " " folder " ") == 0) { print file ": " header " belongs to" owner[header]; bad = 1 }
        }
    }
    END { if (bad) exit 1; print "layers: ok" }' runtime/LAYERS -
