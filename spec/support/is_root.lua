--- Whether the specs are run by root, who may start a program as another user, mount, and make namespaces.
local ffi = require "ffi"

ffi.cdef "unsigned geteuid(void);"

return ffi.C.geteuid() == 0
