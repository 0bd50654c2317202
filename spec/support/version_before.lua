--- The program of the version before this one, built from the history once, and kept in build/, without optimizing.
local crown = require "crown"

local BUILD = [[
  set -eu
  dir=build/version-before/$1
  mkdir -p build/version-before
  exec 9>build/version-before/lock && flock 9
  if [ ! -x "$dir/crown-lua" ]; then
    rm -rf "$dir.new" && mkdir -p "$dir.new" && git archive "$1" | tar -x -C "$dir.new"
    make -s -C "$dir.new" -j2 crown-lua BUILD=build PROGRAM=crown-lua CFLAGS=-O0 >"$dir.new.log" 2>&1 || { cat "$dir.new.log"; exit 1; }
    rm -rf "$dir" && mv "$dir.new" "$dir"
  fi
  echo "$dir/crown-lua"
]]

--- Builds it.
-- @treturn string the program's path, or nil: this clone has no history
local function version_before()
  local found = assert(crown.exec { "tools/package/before.sh" })
  assert(found.code == 0, found.stderr)
  local commit = found.stdout:match "%S+"
  if not commit then return nil end
  local built = assert(crown.exec({ "sh", "-c", BUILD, "sh", commit }, { timeout = 600 }))
  assert(built.code == 0, built.stdout .. built.stderr)
  return (built.stdout:match "%S+")
end

return version_before
