--- The version of these sources, as each format has to write it. One that is not released yet ends with -dev, and has to sort
-- before the release everywhere: Debian has ~ for that, and luarocks the word "pre" (its "dev" sorts after every release).
local read_file = require "crown.text.read_file"

local version = {}

version.program = read_file("Makefile"):match "\nVERSION := (%S+)"
version.is_released = not version.program:find "%-dev$"
version.debian = version.program:gsub("%-dev$", "~dev")
version.rock = version.program:gsub("%-dev$", "pre")

return version
