--- Whether the specs may start this program as another user: as root, and in a checkout that others may read.
local is_root = require "support.is_root"
local program = require "support.program"

local TRY = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all -- test -x %s"

return is_root and os.execute(TRY:format(program)) == 0
