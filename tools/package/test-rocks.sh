#!/bin/bash
# Both rocks, made by Debian's luarocks of a clean tree, into trees of their own.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d /tmp/crown-rocks-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/source"
git archive HEAD | tar -x -C "$work/source"
cd "$work/source"
for rock in crown-lua crown-lua-modules; do
    HOME=$work luarocks --lua-version 5.1 --tree "$work/$rock" make --deps-mode none "rockspec/$rock-scm-1.rockspec" >"$work/log" 2>&1 ||
        { tail -30 "$work/log"; exit 1; }
done
echo "  luarocks builds and installs $("$work/crown-lua/bin/crown-lua" --version)"
cd /
LUA_PATH="$work/crown-lua-modules/share/lua/5.1/?.lua;;" luajit -e 'assert(require("crown.register.session").new)'
echo "  and the modules alone, which a plain LuaJIT loads"
