"""A candidate by kazoo's Election: writes the lines of spec/support/ticker.c while it leads."""
import os
import sys
import time

from kazoo.client import KazooClient

HOSTS, PATH, NODE, FILE, SESSION = sys.argv[1:6]


def now():
    """The clock of all ticks."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def lead():
    """Ticks until the connection is lost."""
    life = now()
    with open(FILE, "ab", buffering=0) as out:
        while client.connected:
            out.write(f"{now()} {NODE} 0 leader {os.getpid()} {life}\n".encode())
            time.sleep(0.005)


client = KazooClient(hosts=HOSTS, timeout=float(SESSION))
client.start()
print("ready", flush=True)
client.Election(PATH, NODE).run(lead)
