#!/bin/sh
# Holds an IP address on the one host that leads.
#
#   crown-lua run --restart permanent --follower "./address.sh drop 192.0.2.10/24 eth0" \
#     address -- ./address.sh hold 192.0.2.10/24 eth0
#
# An address belongs to the kernel, so it does not end with the process that set it. This script therefore sets it for some
# seconds only, again and again. When crown-lua kills the script, the kernel removes the address by itself.
set -eu

usage="usage: $0 hold|drop ADDRESS/PREFIX DEVICE [SECONDS]"
verb=${1:?$usage} address=${2:?$usage} device=${3:?$usage}
lifetime=${4:-3} # whole seconds, 2 or more: how long the kernel keeps the address when nobody asks for it again

drop() { ip address del "$address" dev "$device" 2> /dev/null || :; }

# Neighbours still send to the host that had the address before. Without arping(8) they learn of it a little later.
announce() { ! command -v arping > /dev/null || arping -q -U -c 2 -I "$device" "${address%/*}" || :; }

set_for_a_while() { ip address replace "$address" dev "$device" valid_lft "$lifetime" preferred_lft "$lifetime"; }

hold() {
  trap 'drop; exit 0' INT TERM
  # The leader before may have been killed. Its kernel removes the address within this time.
  sleep "$((lifetime + 1))" & wait "$!"
  set_for_a_while
  echo "holding $address on $device"
  announce &
  while sleep 1 & wait "$!"; do set_for_a_while; done
}

case $verb in
  hold) hold ;;
  drop) drop ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
