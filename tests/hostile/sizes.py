"""What one frame costs each command, by its size: memory of at most 20 times its bytes and a little, and where it comes in a file a second.

    python3 tests/hostile/sizes.py target/release/frameproof            all of them
    python3 tests/hostile/sizes.py target/release/frameproof --only check
"""

import argparse
import dataclasses
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import acts
import files
import measure
import serve
import wire
from acts import BEAT

MIB = 1 << 20
SIZES = (1, 15)
# Memory beyond what the command takes for a small frame, as a multiple of the frame's bytes.
TIMES = 20
# Memory that the work takes whatever the size: stacks of threads, pools of the allocator. In MiB.
LITTLE = 10
# Seconds beyond what the command takes for a small frame.
SECONDS = 1.0


def many(item, size):
    """A snapshot with two lists of this, of so many bytes together."""
    half = ",".join([item] * ((size - 90) // (2 * (len(item) + 1))))
    return '{"type":"snapshot","run_state":{},"events":[' + half + '],"messages":[' + half + "]}"


def keys(size):
    """A heartbeat with that many bytes of keys that nobody declared."""
    return BEAT[:-1] + "," + ",".join(f'"k{at:07}":0' for at in range(size // 13)) + "}"


# What a frame of a size can be: each costs in another way.
KINDS = {
    "numbers": lambda size: many("0", size),
    "empty objects": lambda size: many("{}", size),
    "small objects": lambda size: many('{"a":0}', size),
    "messages": lambda size: many('{"type":"assistant.delta","text":"' + "x" * 60 + '","id":17}', size),
    "keys": keys,
    "one type": lambda size: '{"type":"' + "t" * size + '"}',
    "a key, twice": lambda size: "{" + ",".join(f'"{"k" * (size // 2)}":{at}' for at in (1, 2)) + "}",
    "spaces": lambda size: BEAT[:-1] + " " * size + "}",
}


def recording(text, name="a.ndjson"):
    """A trace of one frame."""
    return files.holds(json.dumps({"t_ms": 1.0, "client": "a", "dir": "recv", "text": text}) + "\n", name)


def event(**parts):
    """The events of a run with one case, which has these parts."""
    return files.holds("".join(json.dumps(each) + "\n" for each in (files.STARTED, files.FINISHED | {"case": "a/b"} | parts)), "e.jsonl")


def line(text):
    """An event with the frame in its wire log."""
    return event(wire=[{"index": 0, "ms": 1.0, "client": "a", "dir": "<-", "kind": None, "text": text, "ambient": False}])


def value(text):
    """An event in which the frame is what came instead of what was expected."""
    return event(failures=[files.FINISHED["failures"][0] | {"actual": json.loads(text)}])


def said(text):
    """An event in which it is the message of a failure."""
    return event(failures=[files.FINISHED["failures"][0] | {"message": text}])


@dataclasses.dataclass(frozen=True)
class Command:
    """A command, and how a frame reaches it: in files that are made of it, or from a server that answers everything with it."""

    arguments: tuple
    make: object = None
    kinds: tuple = tuple(KINDS)
    sizes: tuple = SIZES
    # Exit codes that are right.
    codes: tuple = (0, 1)


SERVED = ("numbers", "messages", "keys")
REPORTED = ("--junit", "j.xml", "--html", "h.html", "-q")
COMMANDS = {
    "check": Command(("check", "a.ndjson", "--protocol", "minicodex", "--junit", "j.xml"), recording),
    "diff": Command(
        ("diff", "b.ndjson", "a.ndjson", "--protocol", "minicodex"),
        lambda text: files.both(recording(text), recording(BEAT, "b.ndjson")),
        # What has no type that is known is no recording of the protocol.
        codes=(0, 1, 2),
    ),
    "report, wire log": Command(("report", "e.jsonl", *REPORTED), line, ("numbers", "keys", "spaces")),
    "report, value": Command(("report", "e.jsonl", *REPORTED), value, ("numbers", "small objects", "keys", "one type")),
    "report, message": Command(("report", "e.jsonl", *REPORTED), said, ("one type",)),
    "run": Command(("run", "minicodex", "handshake/hello-*", "--url", "URL", "-j", "1", "--fail-fast", "--junit", "j.xml"), kinds=SERVED),
    "doctor": Command(("doctor", "minicodex", "--url", "URL"), kinds=SERVED),
    "fuzz": Command(("fuzz", "minicodex", "--url", "URL", "-j", "1", "--iterations", "2", "--time", "2s"), kinds=SERVED[:2], codes=(1, 4)),
    "explore": Command(("explore", "minicodex", "--url", "URL", "-j", "1", "--walks", "1", "--time", "2s"), kinds=SERVED[:2], codes=(1, 4)),
}


def measured(binary, name, kind, size, limit):
    """Runs it on a frame of so many MiB; none: a small one. This process stays small: another one makes the frame."""
    folder = Path(tempfile.mkdtemp(prefix="sizes-"))
    command = [sys.executable, __file__, binary, "--other", name, kind, str(size), folder]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        port = other.stdout.readline().decode().strip()
        arguments = [f"ws://127.0.0.1:{port}/ws" if word == "URL" else word for word in COMMANDS[name].arguments]
        return measure.run(binary, arguments, folder, limit)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def other(name, kind, size, folder):
    """Makes the files of a command, or serves the frame until this process is ended."""
    # A server that says something else than what is awaited is not waited for.
    small = BEAT if COMMANDS[name].make else '{"type":"t"}'
    text = KINDS[kind](int(size) * MIB) if int(size) else small
    if COMMANDS[name].make:
        COMMANDS[name].make(text)(Path(folder))
        return print("made", flush=True)
    act = acts.answers(wire.said(text))()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=serve.once, args=(conn, act, None), daemon=True).start()


def wrong(command, size, got, small, factor):
    """What a run on a frame of this size does not keep, beside one on a small frame."""
    yield from got.broken
    if got.code not in command.codes:
        yield f"exit code {got.code}"
    if got.peak - small.peak > size * TIMES + LITTLE:
        yield f"{got.peak - small.peak} MiB more than for a small frame, instead of {size * TIMES + LITTLE}"
    # How long a server is waited for is another matter.
    if command.make and got.took - small.took > SECONDS * factor:
        yield f"{got.took - small.took:.1f} s more than for a small frame, instead of {SECONDS * factor:g}"


def tried(binary, factor, only=""):
    """Tries all of them, one at a time. How many broke a bound."""
    failures, count, began = 0, 0, time.monotonic()
    for name, command in COMMANDS.items():
        if only not in name:
            continue
        small = measured(binary, name, command.kinds[0], 0, 60 * factor)
        for kind, size in [(kind, size) for kind in command.kinds for size in command.sizes]:
            # A machine that has other work is slow at times: once more says whether it is that.
            for _ in range(2):
                got = measured(binary, name, kind, size, 60 * factor)
                problems = list(wrong(command, size, got, small, factor))
                if not problems:
                    break
            count, failures = count + 1, failures + bool(problems)
            more, took = got.peak - small.peak, got.took - small.took
            mark = "FAIL" if problems else "ok  "
            print(f"{mark} {name}: {size} MiB of {kind}: {took:.1f} s and {more} MiB more ({more / size:.1f} times)", flush=True)
            for problem in problems:
                print(f"       {problem}")
    print(f"{count} frames, {failures} broke a bound, {time.monotonic() - began:.0f} s")
    return failures


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("binary", type=Path)
    said.add_argument("--only", default="")
    said.add_argument("--other", nargs=4, help="make the files of a row, or serve it")
    said.add_argument("--factor", type=float, default=1)
    said = said.parse_args()
    if said.other:
        return other(*said.other)
    return 1 if tried(str(said.binary.resolve()), said.factor, said.only) else 0


if __name__ == "__main__":
    sys.exit(main())
