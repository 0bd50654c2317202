"""A candidate by a client of Consul that is not ours: writes the lines of spec/support/ticker.c while it leads."""
import os
import signal
import sys
import time

import consul

PORT, KEY, NODE, FILE = sys.argv[1:5]
FLAGS = 3304740253564472344


def now():
    """The clock of all ticks."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


client = consul.Consul(host="127.0.0.1", port=int(PORT))
session = client.session.create(name=NODE, ttl=10, lock_delay=2)
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(True))


def acquire():
    """Waits for the lock as `consul lock` does."""
    index = None
    while True:
        index, found = client.kv.get(KEY, index=index, wait="5s")
        if found is not None and found.get("Session"):
            continue
        if client.kv.put(KEY, NODE, acquire=session, flags=FLAGS):
            return
        time.sleep(0.2)


print("ready", flush=True)
acquire()
life = now()
with open(FILE, "ab", buffering=0) as out:
    while not over:
        out.write(f"{now()} {NODE} 0 leader {os.getpid()} {life}\n".encode())
        time.sleep(0.005)
client.kv.put(KEY, "", release=session, flags=FLAGS)
client.session.destroy(session)
