#!/bin/sh
# Checks every require of lua/crown, lua/stores and lua/oracles against lua/LAYERS, and that lua/LAYERS has no circle.
set -eu
export LC_ALL=C # else [a-z] may lack a letter
cd "$(dirname "$0")/.."
for file in $(find lua/crown lua/stores lua/oracles -name '*.lua' | sort); do
    folder=$(echo "$file" | sed -E 's|^lua/oracles/.*|oracles|; s|^lua/stores/.*|stores|; s|^lua/crown/init.lua|crown|; s|^lua/crown/([a-z0-9_]*).*|\1|')
    grep -oE "require *\(?[\"']crown[a-z0-9_.]*" "$file" | sed -E "s/.*[\"']//; s|^|$folder $file |" || true
done | awk '
    NR == FNR {
        if ($0 ~ /^#/ || NF == 0) next
        name = $1; sub(/:$/, "", name)
        for (i = 2; i <= NF; i++)
            if (!($i in may)) { print "lua/LAYERS: " name " may require " $i ", which must stand above it"; bad = 1 }
        may[name] = " " name " " substr($0, index($0, ":") + 1) " "; next
    }
    {
        split($3, part, ".")
        target = part[2] == "" ? "crown" : part[2]
        if (target == "core") next
        if (!($1 in may)) { print $2 ": the folder " $1 " is not in lua/LAYERS"; bad = 1 }
        else if (index(may[$1], " " target " ") == 0) { print $2 ": " $1 " may not require " $3; bad = 1 }
    }
    END { if (bad) exit 1; print "lua layers: ok" }' lua/LAYERS -
