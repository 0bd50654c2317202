rockspec_format = "3.0"
package = "crown-lua"
version = "scm-1"
source = { url = "git+file://." }
description = {
  summary = "Leader election runtime: runs a child on exactly one node, for as long as it leads",
  detailed = "A Lua-scriptable election runtime in C. This rock has the Lua modules; the runtime itself is built by make.",
  license = "MIT",
}
dependencies = { "lua == 5.1" }
build = {
  type = "make",
  build_target = "all",
  install_target = "install",
  install_variables = { PREFIX = "$(PREFIX)" },
}
