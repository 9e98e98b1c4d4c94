"""A server that draws what it does for each connection, for as long as is said, and three commands beside each other against it.

    python3 tests/hostile/soak.py target/release/frameproof --minutes 20 --seed 1
"""

import argparse
import contextlib
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import measure
import servers

# A round of each command lasts until the soak ends, so that what grows has the time to: a run keeps of each case what reports need, up to a bound
# (32 MiB of wire logs) that it comes near only after some hundred cases. Rounds are shorter in a soak of less than so many seconds, in which
# nothing is said of growth.
LONG, SHORT = 600, 60
# Most memory of any of them, in MiB.
MOST = 300
# What it has at least, but for a quarter of the time, may grow by this much between the second and the last quarter of a round, in MiB. What
# lies above goes up and down with what is drawn: messages of 15 MiB are among it. A leak lifts the floor with the rest.
GROWTH = 32
# What each command may end with: the server is never right, sometimes not there, and may not let anything begin.
COMMANDS = {
    "run": (("run", "minicodex", "--url", "URL", "--repeat", "100000", "--time", "ROUND", "-q", "--junit", "j.xml", "--trace", "t.ndjson"), {1, 3}),
    "fuzz": (("fuzz", "minicodex", "--url", "URL", "--time", "ROUND", "-q", "--findings", "found", "--corpus", "corpus"), {1, 3, 4}),
    "doctor": (("doctor", "minicodex", "--url", "URL"), {1, 3}),
}


def serve(seed):
    """Serves until this process ends; the port goes to standard output. One draw a connection, in the order in which they come."""
    draw = random.Random(seed)
    rows = [row for row in servers.ROWS if not row.tls and not row.deaf and "WSS" not in row.arguments and row not in servers.OTHERS]
    acts = {}
    room = threading.Semaphore(64)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    while True:
        conn, _ = listener.accept()
        row = draw.choice(rows)
        if row.name not in acts:
            acts[row.name] = row.make()
        conn.settimeout(90)
        room.acquire()
        threading.Thread(target=once, args=(conn, acts[row.name], room), daemon=True).start()


def once(conn, act, room):
    try:
        with contextlib.suppress(OSError, ValueError, IndexError), conn:
            act(conn)
    finally:
        room.release()


def resident(process):
    """MiB that it has in memory; none where it is over."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) >> 10
    return None


def growth(samples):
    """How much higher the floor is in the last quarter than in the second: what it has less of for a quarter of the time. A short round
    tells nothing."""
    quarter = len(samples) // 4
    if quarter < 20:
        return 0
    floor = lambda part: statistics.quantiles(part, n=4)[0]
    return floor(samples[-quarter:]) - floor(samples[quarter : 2 * quarter])


def again_and_again(name, binary, port, long, until, temporary, told):
    """Rounds of one command. What is wrong goes to `told`."""
    said, codes = COMMANDS[name]
    rounds, worst, most_grown, seen = 0, 0, 0, {}
    while time.monotonic() < until:
        length = max(SHORT, round(until - time.monotonic())) if long else SHORT
        words = {"URL": f"ws://127.0.0.1:{port}/ws", "ROUND": f"{length}s"}
        arguments = [words.get(word, word) for word in said]
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        with open(folder / "out", "wb") as out:
            child = subprocess.Popen([binary, *arguments], cwd=folder, env=measure.environment(temporary), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            samples, began = [], time.monotonic()
            while child.poll() is None:
                size = resident(child.pid)
                if size is not None:
                    samples.append(size)
                if time.monotonic() - began > length + 2 * LONG:
                    child.kill()
                    told.append(f"{name}: it did not end")
                time.sleep(0.25)
        rounds, worst = rounds + 1, max([worst, *samples])
        seen[child.returncode] = seen.get(child.returncode, 0) + 1
        if child.returncode not in codes:
            told.append(f"{name}: exit code {child.returncode}: {(folder / 'out').read_bytes()[-800:].decode(errors='replace')}")
        grown = growth(samples) if time.monotonic() - began > LONG / 2 else 0
        most_grown = max(most_grown, grown)
        if grown > GROWTH:
            told.append(f"{name}: three quarters of the time it had {grown:g} MiB more in the last quarter than in the second")
        left = [path.name for path in folder.glob(".frameproof-*")]
        if left:
            told.append(f"{name}: left behind: {left}")
        shutil.rmtree(folder, ignore_errors=True)
    if worst > MOST:
        told.append(f"{name}: {worst} MiB")
    print(f"{name}: {rounds} rounds, at most {worst} MiB, at most {most_grown:g} MiB more at the end of a round, exit codes {dict(sorted(seen.items()))}", flush=True)


def survivors(temporary):
    """Processes that were started with this folder for temporary files."""
    mark = f"TMPDIR={temporary}".encode()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes():
                yield f"{entry.name} {(entry / 'cmdline').read_bytes()!r}"


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("binary", type=Path)
    said.add_argument("--minutes", type=float, default=20)
    said.add_argument("--seed", type=int, default=1)
    said.add_argument("--serve", action="store_true", help="be the server")
    said = said.parse_args()
    if said.serve:
        return serve(said.seed)
    binary = str(said.binary.resolve())
    server = subprocess.Popen([sys.executable, __file__, binary, "--serve", "--seed", str(said.seed)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    temporary = Path(tempfile.mkdtemp(prefix="soak-temporary-"))
    told = []
    try:
        port = int(server.stdout.readline())
        until = time.monotonic() + said.minutes * 60
        long = said.minutes * 60 > LONG
        threads = [threading.Thread(target=again_and_again, args=(name, binary, port, long, until, temporary, told)) for name in COMMANDS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if server.poll() is not None:
            told.append("the server has ended: nothing was soaked")
        time.sleep(2)
        told += [f"left behind: {path.name}" for path in temporary.iterdir()]
        told += [f"still running: {process}" for process in survivors(temporary)]
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(temporary, ignore_errors=True)
    for line in told:
        print(f"FAIL {line}")
    print(f"{said.minutes:g} minutes, {len(told)} failures")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
