#!/bin/bash
# Runs in a Debian that was booted for it, with /test/before.deb and /test/after.deb: installs, elects, upgrades, takes away.
set -eu
cd /test

say() { echo "  $*"; }
fail() {
    echo "  FAILED: $*"
    journalctl --no-pager -n 60 -u 'crown-*'
    exit 1
}
# shellcheck source=tools/package/inside/within.sh
. /test/within.sh
# What there is, but for what others write on and off; of that, what bears our name.
files() {
    {
        find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /test -o -path /var/log \
            -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/postgresql -o -path /var/tmp \
            -o -path /var/lib/systemd/timers \) -prune -o -print
        find /run /tmp /var/log /var/tmp /var/lib/dpkg/info -name '*crown*'
    } | sort
}
worker_of() { tail -1 "$1.ticks" | cut -d' ' -f1; }
led_by() { [ "$(worker_of "$1")" = "$2" ]; }
ticks() { wc -l <"$1.ticks"; }
# Each line is a worker's node and epoch. Two at once, or an epoch that goes back, is a line of an older epoch after a newer one.
in_order() { awk -v name="$1" '$2 < last { print name ": epoch " $2 " after " last; bad = 1 } { last = $2 } END { exit bad }' "$1.ticks"; }

cat >worker <<'END'
#!/bin/sh
while echo "$CROWN_NODE $CROWN_EPOCH" >>"/test/$CROWN_ELECTION.ticks"; do sleep 0.02; done
END
chmod +x worker
for name in file pg; do
    : >$name.ticks
    chmod 666 $name.ticks
done

# What the libraries bring along is not ours to take away: they are there before.
apt-get install -y -q --no-install-recommends ./before.deb >/dev/null 2>apt.log || { cat apt.log; fail "install"; }
apt-get purge -y -q crown-lua >/dev/null 2>apt.log
files >files.without
users=$(getent passwd | sort)

apt-get install -y -q --no-install-recommends ./before.deb >/dev/null 2>apt.log
[ "$(dpkg-query -W -f '${Version}' crown-lua)" = "$(dpkg-deb -f before.deb Version)" ] || fail "another version"
getent passwd crown-lua >/dev/null || fail "no user"
[ -d /etc/crown-lua ] || fail "no /etc/crown-lua"
[ -e /usr/share/bash-completion/completions/crown-lua ] || fail "no completions"
crown-lua --version >/dev/null
say "installs, with what it loads when it needs it: $(ldconfig -p | grep -cE 'libpq.so.5|libcurl.so.4|libmicrohttpd.so.12|libssl.so.3') of 4 libraries"
[ "$(ldconfig -p | grep -cE 'libpq.so.5|libcurl.so.4|libmicrohttpd.so.12|libssl.so.3')" = 4 ] || fail "a library is missing"

su postgres -c "psql -q -c \"CREATE ROLE crown LOGIN PASSWORD 'secret'\" -c 'CREATE DATABASE app OWNER crown'"
url='postgres://crown:secret@127.0.0.1/app?ttl=5'
mkdir -p /etc/systemd/system/crown-run@.service.d
printf '[Service]\nReadWritePaths=/test\n' >/etc/systemd/system/crown-run@.service.d/test.conf
printf 'CROWN_COMMAND=/test/worker\nCROWN_NODE=one\n' >/etc/crown-lua/file.env
printf 'CROWN_COMMAND=/test/worker\nCROWN_NODE=one\nCROWN_ORACLE=%s\n' "$url" >/etc/crown-lua/pg.env
systemctl daemon-reload
systemctl enable --quiet --now crown-run@file crown-run@pg
within 60 led_by file one
within 60 led_by pg one
user=$(pgrep -f '^/bin/sh /test/worker' | xargs ps -o user= -p | sort -u)
say "a worker runs over the file oracle, and one over Postgres, as $user"
[ "$user" = crown-lua ] || fail "they run as $user"

# Another machine, which is not upgraded meanwhile.
cp /usr/bin/crown-lua crown-before
CROWN_DIRECTORY=/test/two CROWN_NODE=two CROWN_ORACLE=$url ./crown-before run --restart permanent pg -- /test/worker >two.log 2>&1 &
two=$!
within 60 grep -q one two.log
apt-get install -y -q --no-install-recommends ./after.deb >/dev/null 2>apt.log || { cat apt.log; fail "upgrade"; }
within 60 led_by pg two
first=$(ticks file)
goes_on() { [ "$(ticks file)" -gt "$first" ]; }
within 60 goes_on
within 60 systemctl is-active --quiet crown-run@pg
for pid in $(pgrep crown-supervise); do
    case $(readlink "/proc/$pid/exe") in
    /usr/bin/crown-lua | /test/crown-before) ;;
    *) fail "an old program runs after the upgrade: $(readlink "/proc/$pid/exe")" ;;
    esac
done
in_order pg || fail "two led at once"
in_order file || fail "two led at once"
say "an upgrade hands over in order: the other machine leads in epoch $(tail -1 pg.ticks | cut -d' ' -f2)"
kill "$two" # an older leader takes no eviction of the newer version: it ends in order
wait "$two" || true
within 60 led_by pg one
in_order pg || fail "two led at once"
say "the new version leads after the old one, in epoch $(tail -1 pg.ticks | cut -d' ' -f2)"

apt-get remove -y -q crown-lua >/dev/null 2>apt.log || { cat apt.log; fail "remove"; }
! pgrep -f /test/worker >/dev/null || fail "a worker runs after the removal"
[ -e /etc/crown-lua/pg.env ] || fail "settings are gone after a mere removal"
say "a removal ends its leaders, and leaves the settings"
rm -r /etc/systemd/system/crown-run@.service.d # ours, not the package's
apt-get purge -y -q crown-lua >/dev/null 2>apt.log || { cat apt.log; fail "purge"; }
files >files.after
diff files.without files.after || fail "purge leaves these"
[ "$(getent passwd | sort)" = "$users" ] || fail "purge leaves the user"
say "a purge leaves no file and no user"
