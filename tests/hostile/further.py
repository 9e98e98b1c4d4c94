"""Classes of behaviour that the other lists do not have: what differs each time, what is right at first, what costs most where it is masked,
escaped or kept by name, and files that are large in another direction."""

import itertools
import json
import random
import socket
import time
import zlib

from acts import ACCEPT, BEAT, CONNECTION, SWITCH, UPGRADE, beat, floods, http, items, raw, says, switch, typed
from measure import SECRET
from wire import BINARY, PING, TEXT, closing, frame, read_on, request, said, upgrade

MIB = 1 << 20


def distinct(build, count=64):
    """Upgrades, then says something else each time, for ever."""

    def make():
        def act(conn):
            upgrade(conn)
            for at in itertools.count(0, count):
                conn.sendall(b"".join(build(n) for n in range(at, at + count)))

        return act

    return make


def by_turns(*makes):
    """Does one of these with each connection, by turns."""

    def make():
        acts = itertools.cycle([each() for each in makes])
        return lambda conn: next(acts)(conn)

    return make


def over_and_over(build):
    """Upgrades, then says this again and again; it may be large, and is built once."""

    def make():
        each = build()

        def act(conn):
            upgrade(conn)
            while True:
                conn.sendall(each)

        return act

    return make


def at_first(count, first, then):
    """Does one thing with so many connections, and another with all that come later."""

    def make():
        acts = itertools.chain([first()] * count, itertools.repeat(then()))
        return lambda conn: next(acts)(conn)

    return make


def answers_each(build):
    """Upgrades, then answers whatever comes with something else each time."""

    def make():
        def act(conn):
            upgrade(conn)
            for at in itertools.count():
                if not conn.recv(1 << 16):
                    return
                conn.sendall(build(at))

        return act

    return make


def trickles(size, piece, every):
    """A frame of this size, a piece at a time."""

    def make():
        def act(conn):
            upgrade(conn)
            conn.sendall(frame(TEXT, b"", promised=size))
            for _ in range(size // piece):
                conn.sendall(b" " * piece)
                time.sleep(every)

        return act

    return make


def half_closed():
    """Upgrades, ends its half of the connection, and reads on."""

    def act(conn):
        upgrade(conn)
        conn.shutdown(socket.SHUT_WR)
        read_on(conn)

    return act


def urgent():
    """Sends urgent data among the frames."""

    def act(conn):
        upgrade(conn)
        for _ in range(1000):
            conn.sendall(said(BEAT))
            conn.send(b"!", socket.MSG_OOB)
        read_on(conn)

    return act


def pieces_of(data, seed=1):
    """The answer to an upgrade and these bytes, cut anywhere."""

    def make():
        def act(conn):
            draw = random.Random(seed)
            answer = switch(CONNECTION, UPGRADE, ACCEPT)(request(conn)) + data
            while answer:
                cut = draw.randrange(1, 9)
                conn.sendall(answer[:cut])
                answer = answer[cut:]
            read_on(conn)

        return act

    return make


def lone_pings():
    """Greets nobody: pings of 125 bytes without end, ten thousand a second at most, beside an application that is mute."""

    def act(conn):
        upgrade(conn)
        for at in itertools.count():
            conn.sendall(frame(PING, b"%0125d" % at) * 100)
            time.sleep(0.01)

    return act


def interim(conn):
    """Answers of 1xx without end, and nothing else."""
    request(conn)
    while True:
        conn.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)


def paced(text, each):
    """Upgrades, then says it so often in a second, for ever, whatever comes."""

    def make():
        def act(conn):
            upgrade(conn)
            while True:
                conn.sendall(text * (each // 20))
                time.sleep(0.05)

        return act

    return make


def bomb():
    """64 MiB of spaces that a peer with permessage-deflate would inflate: nobody offered it."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = squeeze.compress(b" " * (64 * MIB)) + squeeze.flush(zlib.Z_SYNC_FLUSH)
    return frame(TEXT, data[:-4], reserved=4)


def deflating():
    """Agrees to permessage-deflate, which nobody offered, and sends a bomb in it."""

    def act(conn):
        conn.sendall(switch(CONNECTION, UPGRADE, ACCEPT, b"Sec-WebSocket-Extensions: permessage-deflate")(request(conn)))
        conn.sendall(bomb())
        read_on(conn)

    return act


def many_pings():
    """A message in fragments of one byte with a ping between each two."""
    text = beat('"x":"' + "é" * 500 + '"')[4:]
    parts = [frame(0 if at else TEXT, bytes([byte]), fin=at == len(text) - 1) for at, byte in enumerate(text)]
    return frame(PING, b"x" * 125).join(parts)


def near(count):
    """Text that nearly has the secret, all the time."""
    return (SECRET[:-1] * (count // len(SECRET) + 1))[:count]


def servers(row, one, suite, handshake):
    """The rows. What they are made of is not imported from where they are needed."""
    secret = (*handshake, "--header", "Authorization: env:HOSTILE_TOKEN")
    big = {"arguments": suite, "seconds": 60, "mebibytes": 300}
    masked = {"arguments": (*one, "--header", "Authorization: env:HOSTILE_TOKEN"), "seconds": 60, "mebibytes": 300}
    # One message of a few MiB takes little. What counts here is what is left behind by many, on many connections, beside others.
    mixed = {"arguments": (*handshake[:2], "--url", "URL", "-j", "64", "--repeat", "1000", "--time", "12s", "--junit", "j.xml", "--trace", "t.ndjson"), "seconds": 60, "mebibytes": 280}
    numbers = lambda: items("0", 15 * MIB // 4)
    flood = paced(said(BEAT), 30_000)
    return [
        row("15 MiB of numbers, a flood, and 1 MiB of text, each on other connections", by_turns(over_and_over(numbers), flood, floods(typed("x" * 1_000_000))), "not conformant", **mixed),
        row("15 MiB of numbers, a flood, and 15 MiB of objects, each on other connections", by_turns(says(numbers), floods(said(BEAT) * 512), says(lambda: items("{}", 15 * MIB // 6))), "not conformant", **mixed),
        row("another type in each message, for ever", distinct(lambda n: typed(f"t{n}")), "not conformant", **big),
        row("other unknown keys in each message, for ever", distinct(lambda n: beat(f'"k{n}":{n}')), "not conformant", **big),
        row("an answer to another request each time, for ever", distinct(lambda n: said(f'{{"type":"accepted","req_id":"r{n}"}}')), "not conformant", **big),
        row("a right event with another id each time, for ever", distinct(lambda n: said(f'{{"type":"user_text","text":"x","event_id":{n + 1}}}')), "not conformant", **big),
        row("another wrong value in each message, for ever", distinct(lambda n: said(f'{{"type":"heartbeat","interval_ms":"{n}"}}')), "not conformant", **big),
        row("another error of JSON in each message, for ever", distinct(lambda n: said("{" + " " * (n % 999) + f'"a{n}"')), "not conformant", **big),
        row("another close code for each connection", answers_each(lambda n: closing(3000 + n % 2000)), "instead of", **big),
        row("1,000 answers of 103, and then 101", raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1000, switch(CONNECTION, UPGRADE, ACCEPT)), "the server answered the upgrade with HTTP 103", code=3),
        row("a redirect to 60 KiB of address", raw(http(b"302 Found", b"Location: ws://" + b"a" * 60_000 + b"/\r\n"), then=read_on), "the target cannot be tested", code=3),
        row("the answer and a flood, cut anywhere", pieces_of(said(BEAT) * 500), "not conformant", seconds=30),
        row("a body of a refusal that has the secret", raw(lambda asked: http(b"403 No", b"", b"you sent " + asked + b"%2B".join(asked.split(b"+"))), then=lambda conn: conn.close()), "HTTP 403", code=3, arguments=secret),
        row("rubbish for every second connection", by_turns(says(said(BEAT)), raw(b"\0" * 999)), "not conformant", **big),
        row("right for three connections, then a flood", at_first(3, says(said(BEAT)), floods(said(BEAT) * 99)), "not conformant", **big),
        row("right for three connections, then 7,000,000 numbers", at_first(3, says(said(BEAT)), says(lambda: said('{"a":[' + "0," * 7_000_000 + "0]}"))), "not conformant", **big),
        row("ends its half of the connection and reads on", half_closed, "the server ended the TCP stream without a close frame"),
        row("urgent data between frames", lambda: urgent(), "not conformant", seconds=30),
        row("15 MiB, 64 KiB every 50 ms", trickles(15 * MIB, 64 << 10, 0.05), "not conformant", arguments=one, seconds=60, mebibytes=128),
        row("a ping between every two bytes", says(lambda: many_pings()), "not conformant", seconds=30),
        row("15 MiB of different keys of 1 MiB", says(lambda: said("{" + ",".join(f'"{n}{"k" * MIB}":1' for n in range(14)) + "}")), "not conformant", **big),
        row("15 MiB of small objects 60 levels deep", says(lambda: said('{"a":' * 60 + "[" + '{"b":{}},' * 1_600_000 + "0]" + "}" * 60)), "not conformant", **big),
        row("15 MiB of characters that are shown as escapes", says(lambda: typed("\u202e" * (5 * MIB))), "not conformant", **big),
        row("15 MiB of commands for a CI runner", says(lambda: typed("##[error]" * (15 * MIB // 9))), "not conformant", **big),
        row("15 MiB of surrogate pairs", says(lambda: typed("\\ud83d\\ude00" * (15 * MIB // 12))), "not conformant", **big),
        row("15 MiB of combining characters", says(lambda: typed("a" + "\u0301" * (7 * MIB))), "not conformant", **big),
        row("15 MiB of escapes, with a secret to mask", says(lambda: typed("\\u0041\\n%41" * (15 * MIB // 11))), "not conformant", **masked),
        row("15 MiB that nearly have the secret", says(lambda: typed(near(15 * MIB))), "not conformant", **masked),
        row("15 MiB of binary that nearly have the secret", says(lambda: frame(BINARY, near(15 * MIB).encode())), "not conformant", **masked),
        row("the secret 300,000 times", says(lambda: typed((SECRET + " ") * (MIB // 4))), "not conformant", **masked),
        row("1,000 headers in the answer that have the secret", raw(lambda asked: SWITCH + b"".join(b"X-%d: " % n + SECRET.encode() + b"\r\n" for n in range(1000)) + b"\r\n"), "the server does not speak WebSocket", code=3, arguments=secret),
        row("numbers of 100,000 digits behind the point", says(lambda: said('{"type":"heartbeat","interval_ms":0.' + "0" * 100_000 + "1}")), "not conformant", seconds=30),
        row("answers of 1xx without end", lambda: interim, "the target cannot be tested", code=3, seconds=60),
        row("a header line of 10 MiB", raw(SWITCH + b"X: " + b"a" * (10 * MIB) + b"\r\n\r\n"), "the target cannot be tested", code=3),
        row("pings of 125 bytes for ever beside a mute application", lone_pings, "not conformant", seconds=90, mebibytes=300),
        row("20,000 valid heartbeats a second for ever", paced(said(BEAT), 20_000), "not conformant", **big),
        row("agrees to a compression that nobody offered, with a bomb of 64 MiB", deflating, "it agrees to an extension that was not asked for"),
        row("a bomb of 64 MiB in a compressed frame that nobody agreed to", says(bomb), "not conformant"),
        row("1e-400000 and -0", says(said('{"type":"heartbeat","interval_ms":1e-400000,"x":-0}')), "not conformant"),
    ]


def files(row, holds, started, finished, named):
    """The rows of files."""
    finish = {"event": "run-finished", "cases": {}, "requirements": {}, "stale_baseline": [], "stopped": None, "seconds": 1.0, "exit_code": 0}

    def run(cases, start=None):
        yield json.dumps(started | (start or {})) + "\n"
        for each in cases:
            yield json.dumps(finished | each) + "\n"
        yield json.dumps(finish) + "\n"

    def large(key, part, count):
        """A run of one case with a long list: never whole in memory, for the system counts that of this process to its child's."""
        yield json.dumps(started) + "\n"
        before, after = json.dumps(finished | {"case": "a/b", key: ["HERE"]}).split('"HERE"')
        yield before
        yield from (("," if n else "") + json.dumps(part(n)) for n in range(count))
        yield after + "\n" + json.dumps(finish) + "\n"

    shard = {"shard": {"index": 1, "total": 1, "all": 200_000, "selection": 1}, "cases": 200_000}
    failure = finished["failures"][0]
    report, junit = ("report", "file"), ("report", "file", "--junit", "j.xml")
    return [
        row("events: 200,000 cases to merge", holds(lambda: run(({"case": f"a/{n}"} for n in range(200_000)), shard)), ("merge", "file", "--junit", "j.xml", "-q"), "conformant", code=0, seconds=120, mebibytes=192),
        row("events: 200,000 cases on the console", holds(lambda: run({"case": f"a/{n}"} for n in range(200_000))), (*report, "-q"), "conformant", code=0, seconds=120, mebibytes=192),
        row("events: 20,000 runs", holds(lambda: itertools.chain.from_iterable(run([{"case": "a/b"}]) for _ in range(20_000))), (*junit, "-q"), "", code=0, seconds=60, mebibytes=192),
        row("events: 50,000 families", holds(lambda: run({"case": f"f{n}/a"} for n in range(50_000))), junit, "", code=0, seconds=60, mebibytes=256),
        row("events: a case with 100,000 failures", holds(lambda: large("failures", lambda n: failure | {"message": f"m{n}"}, 100_000)), junit, "", code=0, seconds=60, mebibytes=160),
        row("events: a case with 500,000 frames", holds(lambda: large("wire", lambda n: {"index": n, "ms": 1.0, "client": "a", "dir": "<-", "kind": None, "text": "{}", "ambient": False}, 500_000)), junit, "", code=0, seconds=60, mebibytes=256),
        row("events: a case 200,000 times, failed in another way each time", holds(lambda: run({"case": "a/b", "failures": [failure | {"message": "m" + "abcdefghij"[n % 10] * (n % 1000)}]} for n in range(200_000))), junit, "", code=0, seconds=120, mebibytes=128),
        row("events: seconds of 1e308, below zero and null", holds(lambda: run([{"case": "a/b", "seconds": 1e308}, {"case": "a/c", "seconds": -1e308}])), junit, "", code=0),
        row("events: names of 1 MiB", holds(lambda: run({"case": f"{'f' * MIB}/{n}{'c' * MIB}"} for n in range(20))), junit, "", code=0, seconds=30, mebibytes=192),
        row("trace: a time that goes back and is huge", holds(lambda: (json.dumps({"t_ms": at, "client": "a", "dir": "recv", "text": "{}"}) + "\n" for at in (1.0, -5.0, 1e300, 0.0))), named(("check", "PATH", "--protocol", "minicodex")), "", code=2),
        row("trace: 100,000 answers to requests that nobody made", holds(lambda: (json.dumps({"t_ms": 1.0, "client": "a", "dir": "recv", "text": json.dumps({"type": "accepted", "req_id": f"r{n}"})}) + "\n" for n in range(100_000))), named(("check", "PATH", "--protocol", "minicodex")), "", code=1, seconds=60, mebibytes=300),
        row("baseline: a message of 1 MiB, 20 times", holds(lambda: ["known:\n", *(f'  - case: "handshake/none-{n}"\n    match: "MC-HS-1"\n    message: "{"m" * MIB}"\n    count: 1\n    reason: "r"\n' for n in range(20))]), named(("run", "minicodex", "handshake/hello-without-version", "--reference", "--baseline", "PATH")), "over the limit of 16777216", code=2, seconds=30, mebibytes=256),
    ]
