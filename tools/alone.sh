#!/bin/sh
# alone.sh COMMAND...: runs it in namespaces of its own where that is allowed, so that nothing it starts outlives it, no
# port collides and /tmp is left clean; else just runs it.
isolate="unshare --pid --fork --kill-child --mount-proc --net"
$isolate true 2>/dev/null || exec "$@"
case $PWD in /tmp/*) tmp=true ;; *) tmp='mount -t tmpfs tmpfs /tmp' ;; esac
# The shell stays, as process 1 of the namespace: a test that becomes it would reap strangers.
exec $isolate sh -c 'ip link set lo up; '"$tmp"'; "$@"; exit $?' alone "$@"
