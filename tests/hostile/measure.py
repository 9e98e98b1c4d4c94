"""Runs frameproof in a folder of its own and says what it took. This process stays small: the system counts its memory into its child's."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.parsers.expat
from pathlib import Path

HERE = Path(__file__).parent
SECRET = "hostile-s3cret/token+1"
# What no output may hold: control characters, and those that turn or hide text.
UNSAFE = {
    chr(code)
    for code in [*range(32), *range(127, 160), 0xAD, 0x61C, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xFFFE, 0xFFFF]
} - set("\n\r\t")
# What frameproof writes.
WRITTEN = {".xml", ".jsonl", ".ndjson", ".html", ".md", ".yaml"}
# Most that may be shown, in bytes.
SHOWN = 2 << 20


@dataclasses.dataclass
class Measured:
    """`code`: of the exit; below zero: by which signal. Seconds, MiB."""

    code: int
    took: float
    # Seconds of processor time: what else the machine does counts little.
    worked: float
    peak: int
    out: str
    # What must hold whatever is done, and does not.
    broken: list


def environment(temporary):
    """Nothing of this machine's but the path."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(temporary),
        "TMPDIR": str(temporary),
        "NO_COLOR": "1",
        "HOSTILE_TOKEN": SECRET,
    }


def pieces(path):
    """A file's text, a piece at a time, each with the end of the one before it."""
    with open(path, encoding="utf-8", errors="replace") as text:
        before = ""
        while piece := text.read(1 << 16):
            yield before + piece
            before = piece[-len(SECRET):]


def is_xml(path):
    """That it is well-formed. Nothing of it is kept."""
    parser = xml.parsers.expat.ParserCreate()
    with open(path, "rb") as text:
        parser.ParseFile(text)


def run(binary, arguments, folder, limit, ended=None):
    """Runs it, and ends it when it takes much longer than it may. `ended`: it is told to end after so many seconds, and what it takes is
    counted from then."""
    temporary = folder / "temporary"
    temporary.mkdir()
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            [binary, *arguments], cwd=folder, env=environment(temporary), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )
        timer = threading.Timer(limit + (ended or 0), child.kill)
        timer.start()
        if ended is not None:
            time.sleep(ended)
            # The object would take its exit code, with what it took, if it has ended.
            os.kill(child.pid, signal.SIGTERM)
            began = time.monotonic()
        _, status, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - began
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        length = out.seek(0, os.SEEK_END)
        out.seek(0)
        text = out.read(SHOWN).decode("utf-8", "backslashreplace")
    kilobytes = usage.ru_maxrss if sys.platform == "linux" else usage.ru_maxrss // 1024
    broken = list(whatever(text, length, folder, temporary))
    if ended is not None:
        broken += [f"no {word}" for word in arguments if word.endswith((".xml", ".jsonl")) and not (folder / word).is_file()]
    return Measured(child.returncode, took, usage.ru_utime + usage.ru_stime, kilobytes >> 10, text, broken)


def whatever(text, length, folder, temporary):
    """What must hold of every run."""
    if length > SHOWN:
        yield f"{length} bytes are shown"
    unsafe = sorted({f"U+{ord(each):04X}" for each in text if each in UNSAFE})
    if unsafe:
        yield f"shown as they are: {', '.join(unsafe)}"
    for line in text.splitlines():
        if line.lstrip().startswith("::") or "##[" in line or "##vso[" in line:
            yield f"a command to a runner: {line[:80]}"
            break
    left = [path.name for path in temporary.iterdir()] + [path.name for path in folder.glob(".frameproof-*")]
    if left:
        yield f"left behind: {', '.join(left)}"
    for path in folder.glob("*.xml"):
        try:
            is_xml(path)
        except xml.parsers.expat.ExpatError as error:
            yield f"{path.name}: {error}"
    for path in folder.rglob("*"):
        if path.suffix in WRITTEN and path.is_file() and any(SECRET in line for line in pieces(path)):
            yield f"a secret in {path.name}"
    if SECRET in text:
        yield "a secret is shown"


class Server:
    """A behaviour, in a process of its own."""

    def __init__(self, row):
        self.process = subprocess.Popen([sys.executable, str(HERE / "serve.py"), row.name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return int(self.process.stdout.readline())

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def server(binary, row, factor):
    """One row of servers."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        with Server(row) as port:
            words = {
                "URL": f"ws://127.0.0.1:{port}/ws",
                "WSS": f"wss://127.0.0.1:{port}/ws",
                "AUTHORITY": str(HERE / "certificates" / "authority.pem"),
            }
            arguments = [words.get(word, word) for word in row.arguments]
            return run(binary, arguments, folder, row.seconds * factor * 2 + 10, row.ended)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def file(binary, row, factor):
    """One row of files."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        row.make(folder)
        return run(binary, list(row.arguments), folder, row.seconds * factor * 2 + 10)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
