"""What files hold and where paths lead: one row each. Each is laid down in a folder of its own, in which frameproof then runs."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Callable

import further
from servers import FAILED, HARNESS, MIB, NOTHING, USAGE

PASSED = 0
SHIPPED = Path(__file__).parent.parent.parent / "protocols" / "minicodex"
SCENARIO = ("run", "minicodex", "--scenario", "PATH", "--reference")
OVERLAY = ("list", "minicodex", "--overlay", "PATH")
BASELINE = ("run", "minicodex", "handshake/*", "--baseline", "PATH", "--reference")
CONFIG = ("run", "minicodex", "--config", "PATH")
AUTHORITY = ("run", "minicodex", "--url", "wss://127.0.0.1:1/", "--ca-file", "PATH")
TRACE = ("check", "PATH", "--protocol", "minicodex")
EVENTS = ("report", "PATH")
PROTOCOL = ("list", "--protocol", "protocol")
SMALL = ("run", "minicodex", "handshake/*", "--reference")


@dataclasses.dataclass(frozen=True)
class Row:
    """A file. `make` lays it down in the folder that it is given."""

    name: str
    make: Callable
    arguments: tuple
    told: str
    code: int = USAGE
    seconds: int = 15
    mebibytes: int = 128
    also: int | None = None


def holds(content, name="file"):
    """A file with these bytes; what is called makes them, piece by piece."""

    def make(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as out:
            for piece in content() if callable(content) else [content]:
                out.write(piece if isinstance(piece, bytes) else piece.encode())

    return make


def link(to, name="file"):
    """A symbolic link."""

    def make(folder):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(to, folder / name)

    return make


def fifo(folder):
    """A FIFO to which nobody writes."""
    os.mkfifo(folder / "file")


def both(*makers):
    """All of these."""

    def make(folder):
        for each in makers:
            each(folder)

    return make


def nothing(_):
    """No file at all."""


def zeros(count):
    """So many MiB."""
    return lambda: (b"#" * (MIB - 1) + b"\n" for _ in range(count))


def named(arguments, path="file"):
    """The arguments with the path in its place."""
    return tuple(path if word == "PATH" else word for word in arguments)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(97 + n)}: &{chr(97 + n)} [{','.join(['*' + chr(96 + n)] * 9)}]\n" for n in range(1, 24)
)
CASE = "  - name: {name}\n    title: {title}\n    covers: [MC-HS-1]\n    steps:\n      - open: alice\n"


def cases(count=1, title="t"):
    """A scenario file."""
    return "family: x\nabout: y\ncases:\n" + "".join(CASE.format(name=f"a{at}", title=title) for at in range(count))


def frames(count):
    """A trace of so many frames."""
    line = json.dumps({"t_ms": 1.0, "client": "a", "dir": "recv", "text": '{"type":"heartbeat","interval_ms":15000}'}) + "\n"
    return lambda: (line for _ in range(count))


def recorded(count):
    """The events of a run of so many cases, all of them failed in the same way."""

    def pieces():
        yield json.dumps(STARTED | {"cases": count}) + "\n"
        for at in range(count):
            yield json.dumps(FINISHED | {"case": f"a/{at}"}) + "\n"

    return pieces


STARTED = {
    "event": "run-started", "version": "0", "protocol": "p", "title": "P 1", "target": "t", "started": "2026-01-02T03:04:05Z", "seed": 1,
    "reading": "default", "cases": 1, "jobs": 1, "requirements": {"R-1": {"level": "MUST", "area": "a", "text": "t", "source": "s", "reading": None}},
}
FINISHED = {
    "event": "case-finished", "title": "t", "file": "f.yaml", "line": 1, "covers": ["R-1"], "verdict": "failed", "reason": None, "seconds": 0.1,
    "started": 0.1, "failures": [{
        "requirements": ["R-1"], "verdict": "failed", "check": "c", "message": "m", "step": None, "expected": None, "actual": None, "frames": [],
    }], "earlier": [], "exercised": {"R-1": 1}, "wire": [], "wire_omitted": 0, "log": [], "log_omitted": 0, "opening": None, "embedded": False,
    "same_as": None, "excused": [], "reproduce": "frameproof run", "known": None,
}


def entries(count):
    """A baseline of so many entries."""

    def pieces():
        yield "known:\n"
        for at in range(count):
            yield f'  - case: "handshake/none-{at}"\n    match: "MC-HS-1"\n    message: "m"\n    count: 1\n    reason: "r"\n'

    return pieces


def protocol(old, new):
    """The shipped protocol, changed at one place."""

    def make(folder):
        there = folder / "protocol"
        shutil.copytree(SHIPPED, there)
        text = (there / "asyncapi.yaml").read_text()
        assert old in text, old
        (there / "asyncapi.yaml").write_text(text.replace(old, new, 1))

    return make


HELLO = "hello: { $ref: '#/components/messages/hello' }"


def referring(to):
    """A protocol that refers to this."""
    return protocol(HELLO, f"hello: {{ $ref: '{to}' }}")


def pattern(regex):
    """A protocol with this regular expression."""
    return protocol("\ncomponents:", f"\ncomponents:\n  schemas-of-mine: {{ type: string, pattern: '{regex}' }}")


def everywhere(name, make, told, kinds=("scenario", "overlay", "baseline", "configuration", "certificates", "trace", "events"), **more):
    """A row for each kind of file that is read."""
    for kind in kinds:
        # An empty trace is none that was refused: there is nothing to judge.
        code = NOTHING if (kind, name) == ("trace", "empty") else USAGE
        says = told if isinstance(told, str) else told.get(kind, told[""])
        yield Row(f"{kind}: {name}", make, named(READ[kind]), says, code, **more)


READ = {
    "scenario": SCENARIO,
    "overlay": OVERLAY,
    "baseline": BASELINE,
    "configuration": CONFIG,
    "certificates": AUTHORITY,
    "trace": TRACE,
    "events": EVENTS,
}
YAML = ("scenario", "overlay", "baseline")
TEXT = (*YAML, "configuration")

READING = [
    *everywhere("a FIFO", fifo, "it is a FIFO, which may never end"),
    *everywhere("a link to /dev/zero", link("/dev/zero"), "longer than"),
    *everywhere("a link to itself", link("file"), "Too many levels of symbolic links"),
    *everywhere("a folder", lambda folder: (folder / "file").mkdir(), {"scenario": "contains no scenario files", "": "it is a folder"}),
    *everywhere("33 MiB", holds(zeros(33)), "it is longer than 32 MiB, the limit of such a file", TEXT),
    *everywhere("not UTF-8", holds(b"\xff\xfe\x00\x01" * 99), {"configuration": "invalid utf-8 sequence", "certificates": "holds no certificate in PEM form", "trace": "not an event of a trace", "": "is not UTF-8"}),
    *everywhere("NUL", holds(b"a: b\0c\n"), {"configuration": "key with no value", "": "unexpected character"}, TEXT),
    *everywhere("a bomb of aliases", holds(BOMB), "the file is too large, or aliases make it so", YAML, mebibytes=160),
    *everywhere("100,000 brackets", holds("a: " + "[" * 100_000), "recursion limit exceeded", YAML),
    *everywhere("an alias of itself", holds("a: &a [*a]\n"), "recursive references", YAML),
    *everywhere("empty", holds(b""), {"certificates": "holds no certificate in PEM form", "trace": "the trace is empty", "events": "holds no run", "": "the file is empty"}, (*YAML, "certificates", "trace", "events")),
]

CONTENT = [
    Row("scenario: 20,000 cases of one name", holds("family: x\nabout: y\ncases:\n" + CASE.format(name="a", title="t") * 20_000), named(SCENARIO), "the file is too large"),
    Row("scenario: 20,000 unknown keys", holds("family: x\nabout: y\ncases:\n" + CASE.format(name="a", title="t") + "".join(f"    k{n}: 1\n" for n in range(20_000))), named(SCENARIO), "more errors, which are not shown"),
    Row("scenario: a title with bidirectional control characters", holds(cases(title='"\\u202egnp.exe\\e[2J"')), ("list", "minicodex", "--scenario", "file"), "\\u{202e}gnp.exe", code=PASSED),
    Row("scenario: a title of 10 MiB", holds(lambda: ["family: x\nabout: y\ncases:\n", CASE.format(name="a", title="t" * (10 << 20))]), ("list", "minicodex", "--scenario", "file"), "… (+10484760 bytes)", code=PASSED, mebibytes=192),
    Row("scenario: a title that is a command for a CI runner", holds(cases(title='"::error::x ##[error]x ##vso[task.complete]"')), ("list", "minicodex", "--scenario", "file"), "\\u{3a}:error::x", code=PASSED),
    Row("scenario: a case that waits a year", holds(cases() + "      - wait: 31536000s\n"), named(SCENARIO), "unknown field `wait`"),
    Row("scenario: a folder with circular links", both(holds(cases(), "d/a.yaml"), link("..", "d/up")), named(SCENARIO, "d"), "conformant: 1 case", code=PASSED),
    Row("protocol: a link to /dev/zero", link("/dev/zero", "protocol/asyncapi.yaml"), PROTOCOL, "it is longer than 32 MiB"),
    Row("protocol: a reference to file:///etc/passwd", referring("file:///etc/passwd"), PROTOCOL, "points outside the document"),
    Row("protocol: a reference to a URL", referring("http://127.0.0.1:1/x"), PROTOCOL, "points outside the document"),
    Row("protocol: a reference to ../../x", referring("../../x.yaml#/a"), PROTOCOL, "points outside the document"),
    Row("protocol: a reference to itself", referring("#/channels/agent/messages/hello"), PROTOCOL, "has no example"),
    Row("protocol: a reference into 100,000 levels", referring("#/" + "a/" * 100_000), PROTOCOL, "#/a/a/a"),
    Row("overlay: null", holds("null\n"), named(OVERLAY), "the file has only null"),
    Row("overlay: everything removed", holds("components: null\nchannels: null\noperations: null\n"), named(OVERLAY), "the server sends no message"),
    Row("overlay: a pattern of exponential time", holds("components: { messages: { hello: { payload: { properties: { v: { type: string, pattern: '^(a+)+$' } } } } } }\n"), named(OVERLAY), "the example breaks its schema: does not match"),
    Row("overlay: a pattern of 10^9 states", holds("components: { messages: { hello: { payload: { properties: { v: { type: string, pattern: '((a{1000}){1000}){1000}' } } } } } }\n"), named(OVERLAY), "is not a \"regex\""),
    Row("baseline: 10,000 entries", holds(entries(10_000)), named(BASELINE), "names no case", code=PASSED),
    Row("baseline: 20,000 entries", holds(entries(20_000)), named(BASELINE), "names no case", code=PASSED, mebibytes=192),
    Row("baseline: 40,000 entries", holds(entries(40_000)), named(BASELINE), "the file is too large", seconds=30, mebibytes=192),
    Row("baseline: a pattern of globs", holds('known:\n  - case: "' + "*a" * 5000 + '"\n    match: "*"\n    reason: r\n'), named(BASELINE), "names no case", code=PASSED),
    Row("configuration: 100,000 brackets", holds("a = " + "[" * 100_000), named(CONFIG), "max recursion depth met"),
    Row("configuration: a key of 100,000 dots", holds("a" + ".a" * 100_000 + " = 1\n"), named(CONFIG), "recursion limit"),
    Row("configuration: 20,000 unknown keys", holds("".join(f"k{n} = 1\n" for n in range(20_000))), named(CONFIG), "more errors, which are not shown"),
    Row("configuration: a target whose program does not exist", holds("[target.a]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:1/'\ncommand = ['/none/such']\n"), ("run", "--config", "file", "--target", "a"), "cannot be started: No such file", code=HARNESS),
    Row("certificates: 9 MiB", holds(zeros(9)), named(AUTHORITY), "it is longer than 8 MiB"),
    Row("certificates: invalid data between the marks", holds(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), named(AUTHORITY), "a certificate cannot be used"),
    Row("certificates: a mark that never ends", holds(b"-----BEGIN CERTIFICATE-----\n" + b"A" * 64 * 9999), named(AUTHORITY), "missing section end marker"),
]

RECORDS = [
    Row("trace: 200,000 frames", holds(frames(200_000)), named(TRACE), "200000 events, 0 violations", code=PASSED, seconds=30, mebibytes=300),
    Row("trace: a line of 65 MiB", holds(lambda: (b"x" * MIB for _ in range(65))), named(TRACE), "the line is longer than 67108864 bytes", mebibytes=300),
    Row("trace: no JSON", holds("nonsense\n"), named(TRACE), "not an event of a trace"),
    Row("trace: 100,000 brackets", holds("[" * 100_000 + "\n"), named(TRACE), "not an event of a trace"),
    Row("trace: a line that was cut", holds('{"t_ms":1.0,"client":"a","dir":"recv","te'), named(TRACE), "not an event of a trace"),
    Row("trace: a time of 1e999", holds('{"t_ms":1e999,"client":"a","dir":"recv","text":"{}"}\n'), named(TRACE), "number out of range"),
    Row("trace: 100,000 clients", holds(lambda: (json.dumps({"t_ms": 1.0, "client": f"c{n}", "dir": "recv", "text": "{}"}) + "\n" for n in range(100_000))), named(TRACE), "/type is missing", code=FAILED, seconds=30, mebibytes=300),
    Row("events: 100,000 cases", holds(recorded(100_000)), ("report", "file", "--junit", "j.xml"), "", code=PASSED, seconds=60, mebibytes=128),
    Row("events: 200,000 cases", holds(recorded(200_000)), ("report", "file", "--junit", "j.xml"), "", code=PASSED, seconds=120, mebibytes=128),
    Row("events: escape sequences", holds(lambda: [json.dumps(STARTED | {"title": "\x1b[2J\u202e", "target": "::error::x\n##[group]"}) + "\n", json.dumps(FINISHED | {"case": "\x1b]0;x\x07", "title": "##vso[x]"}) + "\n"]), ("report", "file"), "\\u{1b}[2J\\u{202e}", code=PASSED),
    Row("events: a protocol called ../../x", holds(json.dumps(STARTED | {"protocol": "../../x"}) + "\n"), ("report", "file", "--report-dir", "reports"), "", code=PASSED),
    Row("events: no run", holds("{}\n"), named(EVENTS), "missing field `event`"),
    Row("findings: a bomb of aliases", holds(BOMB, "found/a.yaml"), ("fuzz", "minicodex", "--reference", "--replay", "found"), "the file is too large", code=NOTHING),
    Row("corpus: rubbish", both(holds("{", "corpus/a.json"), holds("[" * 99999, "corpus/b.json")), ("fuzz", "minicodex", "--reference", "--iterations", "8", "--corpus", "corpus", "--findings", "found"), "skipped corpus/b.json", code=PASSED, seconds=30, mebibytes=192),
]

PLACES = [
    Row("report: a link out of the folder", link("../elsewhere"), (*SMALL, "--junit", "file"), "a symbolic link leads out of this folder"),
    Row("report: a folder that is a link out", link("..", "there"), (*SMALL, "--report-dir", "there"), "a symbolic link leads out of this folder"),
    Row("report: a link to itself", link("file"), (*SMALL, "--junit", "file"), "too many symbolic links"),
    Row("report: a folder", lambda folder: (folder / "file").mkdir(), (*SMALL, "--junit", "file"), "it is a folder"),
    Row("report: below a file", holds(b""), (*SMALL, "--junit", "file/j.xml"), "cannot be written"),
    Row("report: two at one place", nothing, (*SMALL, "--junit", "x", "--json", "x"), "would be overwritten"),
    Row("report: over its input", holds(json.dumps(STARTED) + "\n"), ("report", "file", "--junit", "file"), "would be overwritten"),
    Row("report: a full disk", nothing, (*SMALL, "--junit", "/dev/full"), "No space left", code=HARNESS),
    Row("trace: a full disk", nothing, (*SMALL, "--trace", "/dev/full", "--junit", "j.xml"), "passed", code=HARNESS),
    Row("--repeat 4294967295", nothing, ("run", "minicodex", "handshake/*", "--reference", "--repeat", "4294967295", "--time", "3s", "-q"), "time is up", code=HARNESS, seconds=30, mebibytes=300),
    Row("--config that is not there", nothing, ("run", "--config", "none.toml"), "cannot be read"),
]

FURTHER = further.files(Row, holds, STARTED, FINISHED, named)

ROWS = [*READING, *CONTENT, *RECORDS, *PLACES, *FURTHER]
