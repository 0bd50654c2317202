rockspec_format = "3.0"
package = "crown-lua"
version = "0.2.0pre-1"
source = { url = "crown-lua-0.2.0-dev.tar.gz" }
description = {
  summary = "Runs a program on exactly one of several machines, and moves it when that machine fails",
  detailed = "The program crown-lua, built by make (README.md says from which packages), with its manual pages and documents.",
  license = "MIT",
}
dependencies = { "lua == 5.1" }
build = {
  type = "make",
  build_target = "all",
  install_target = "install",
  install_variables = { PREFIX = "$(PREFIX)", ETC = "$(PREFIX)/etc" },
}
