"""What servers do: one row each. `told` is what frameproof must say of it, in the last line or in the message."""

import dataclasses
import time
from typing import Callable

import further
from acts import (
    ACCEPT, BEAT, CONNECTION, SWITCH, UPGRADE, answers, at_once, beat, drips, echoes, flooding, floods, goes, http, items, keys, mirror, raw,
    reads_nothing, says, switch, typed,
)
from wire import BINARY, CLOSE, PING, PONG, TEXT, closing, frame, read_on, reset, said, upgrade

HANDSHAKE = ("run", "minicodex", "handshake/*", "--url", "URL", "--fail-fast", "--junit", "j.xml", "--trace", "t.ndjson")
ONE = (*HANDSHAKE[:2], "handshake/hello-without-version", *HANDSHAKE[3:])
SUITE = ("run", "minicodex", "--url", "URL", "-j", "8", "--fail-fast=4", "--junit", "j.xml", "--json", "e.jsonl")
DOCTOR = ("doctor", "minicodex", "--url", "URL")
FUZZ = ("fuzz", "minicodex", "--url", "URL", "--time", "2s", "--findings", "found", "--junit", "j.xml")
EXPLORE = ("explore", "minicodex", "--url", "URL", "--walks", "2", "--save", "found", "--junit", "j.xml")
TRUSTED = ("--ca-file", "AUTHORITY")
MIB = 1 << 20

FAILED, USAGE, HARNESS, NOTHING, INTERRUPTED = 1, 2, 3, 4, 130


@dataclasses.dataclass(frozen=True)
class Row:
    """A behaviour. `make` yields what is done with a connection; it is called in the server's process, for what it builds may be large."""

    name: str
    make: Callable
    told: str
    code: int = FAILED
    arguments: tuple = HANDSHAKE
    seconds: int = 15
    mebibytes: int = 128
    tls: str | None = None
    # Listens, and never accepts.
    deaf: bool = False
    # Another exit code that is right.
    also: int | None = None
    # frameproof is told to end after so many seconds: `seconds` count from then, and its reports must be there.
    ended: float | None = None


def kept(name):
    """A row of `run`."""
    return next(row for row in [*CONNECTS, *FRAMES, *MESSAGES, *TIMES] if row.name == name)


CONNECTS = [
    Row("listens and accepts no connection", lambda: read_on, "the server accepted the TCP connection and sent no HTTP answer", code=HARNESS, deaf=True),
    Row("accepts, reads and sends nothing", lambda: read_on, "the server accepted the TCP connection and sent no HTTP answer", code=HARNESS),
    Row("accepts and disconnects", lambda: goes, "the connection broke during the upgrade", code=HARNESS),
    Row("accepts and resets", lambda: reset, "the target cannot be tested", code=HARNESS),
    Row("resets after the request", raw(then=reset), "the target cannot be tested", code=HARNESS),
    Row("disconnects after the request", raw(then=goes), "the connection broke during the upgrade", code=HARNESS),
    Row("sends first, as an SSH server", at_once(b"SSH-2.0-OpenSSH_9.9\r\n"), "the server does not speak WebSocket: httparse error", code=HARNESS),
    Row("sends zeros for ever", at_once(then=flooding(b"\0" * 65536)), "the target cannot be tested", code=HARNESS),
    Row("sends 0xff for ever", at_once(then=flooding(b"\xff" * 65536)), "the server does not speak WebSocket: httparse error", code=HARNESS),
    Row("answers ws:// with a TLS alert", raw(b"\x15\x03\x03\x00\x02\x02\x28", then=goes), "the server does not speak WebSocket: httparse error", code=HARNESS),
    Row("HTTP/2 settings", raw(b"\0\0\0\x04\0\0\0\0\0", then=goes), "the server does not speak WebSocket: httparse error", code=HARNESS),
]

ANSWERS = [
    Row("200 with a page", raw(http(b"200 OK", b"Content-Length: 5\r\n", b"hello"), then=goes), "the server answered the upgrade with HTTP 200: hello", code=HARNESS),
    Row("200 with a page without end", raw(http(b"200 OK"), then=flooding(b"<p>" * 9999)), "the server answered the upgrade with HTTP 200", code=HARNESS),
    Row("401", raw(http(b"401 Unauthorized", b"WWW-Authenticate: Bearer\r\n"), then=goes), "the server answered the upgrade with HTTP 401", code=HARNESS),
    Row("404 that stays open", raw(http(b"404 Not Found")), "the server answered the upgrade with HTTP 404", code=HARNESS),
    Row("500 with a body of 64 MiB", raw(http(b"500 Oops", b"Content-Length: 67108864\r\n"), then=flooding(b"x" * 65536)), "the server answered the upgrade with HTTP 500", code=HARNESS),
    Row("503", raw(http(b"503 Busy", b"Retry-After: 99999999999\r\n"), then=goes), "the server answered the upgrade with HTTP 503", code=HARNESS),
    Row("a redirect to itself", raw(http(b"307 Again", b"Location: /ws\r\n"), then=goes), "the server answered the upgrade with HTTP 307", code=HARNESS),
    Row("a redirect to file:///etc/passwd", raw(http(b"302 Found", b"Location: file:///etc/passwd\r\n"), then=goes), "the server answered the upgrade with HTTP 302", code=HARNESS),
    Row("status 999", raw(http(b"999 What"), then=goes), "the server answered the upgrade with HTTP 999", code=HARNESS),
    Row("status 000", raw(http(b"000 What"), then=goes), "the server does not speak WebSocket: invalid status code", code=HARNESS),
    Row("a reason with escape sequences", raw(http(b"403 \x1b]0;owned\x07\x1b[31mNo"), then=goes), "the server does not speak WebSocket: httparse error", code=HARNESS),
    Row("a status line of 16 MiB", raw(b"HTTP/1.1 500 ", lambda _: b"x" * (16 * MIB) + b"\r\n\r\n"), "the server does not speak WebSocket: Attack attempt detected", code=HARNESS),
    Row("a status line that never ends", raw(b"HTTP/1.1 500 ", then=flooding(b"x" * 65536)), "the server does not speak WebSocket: Attack attempt detected", code=HARNESS),
    Row("one header of 64 MiB", raw(SWITCH + b"X: ", lambda _: b"x" * (64 * MIB)), "the server does not speak WebSocket: Attack attempt detected", code=HARNESS),
    Row("100,000 headers", raw(SWITCH + b"X-A: b\r\n" * 100_000), "the server does not speak WebSocket: Space limit exceeded", code=HARNESS),
    Row("headers without end", raw(SWITCH, then=flooding(b"X-A: b\r\n" * 999)), "the server does not speak WebSocket: Space limit exceeded", code=HARNESS),
    Row("a header with NUL", raw(switch(CONNECTION, UPGRADE, ACCEPT, b"X: a\0b")), "the server does not speak WebSocket: httparse error", code=HARNESS),
    Row("a header that is not UTF-8", raw(switch(CONNECTION, UPGRADE, ACCEPT, b"X: \xff\xfe"), then=goes), "the server ended the TCP stream without a close frame"),
    Row("a header without a name", raw(switch(CONNECTION, UPGRADE, ACCEPT, b": x")), "the server does not speak WebSocket: httparse error", code=HARNESS),
    Row("the answer a byte at a time", drips(SWITCH, 0.05), "the server does not speak WebSocket: httparse error", code=HARNESS, seconds=30),
    Row("100 Continue for ever", raw(then=flooding(b"HTTP/1.1 100 Continue\r\n\r\n" * 99)), "the server answered the upgrade with HTTP 100", code=HARNESS),
    Row("101 without Sec-WebSocket-Accept", raw(switch(CONNECTION, UPGRADE)), "the server does not speak WebSocket: Key mismatch", code=HARNESS),
    Row("101 with the accept of another key", raw(switch(CONNECTION, UPGRADE, b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=")), "the server does not speak WebSocket: Key mismatch", code=HARNESS),
    Row("101 with two accepts", raw(switch(CONNECTION, UPGRADE, ACCEPT, b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA="), then=goes), "the server ended the TCP stream without a close frame"),
    Row("101 without Upgrade", raw(switch(CONNECTION, ACCEPT)), "the server does not speak WebSocket: No", code=HARNESS),
    Row("101 with Upgrade: h2c", raw(switch(CONNECTION, b"Upgrade: h2c", ACCEPT)), "the server does not speak WebSocket: No", code=HARNESS),
    Row("101 without Connection", raw(switch(UPGRADE, ACCEPT)), "the server does not speak WebSocket: No", code=HARNESS),
    Row("101 in HTTP/1.0", raw(lambda asked: switch(CONNECTION, UPGRADE, ACCEPT)(asked).replace(b"1.1", b"1.0", 1), then=goes), "the server does not speak WebSocket: HTTP version must be 1.1", code=HARNESS),
    Row("101 with bare line feeds", raw(lambda asked: switch(CONNECTION, UPGRADE, ACCEPT)(asked).replace(b"\r\n", b"\n"), then=goes), "the server ended the TCP stream without a close frame"),
    Row("101 with an extension", raw(switch(CONNECTION, UPGRADE, ACCEPT, b"Sec-WebSocket-Extensions: permessage-deflate")), "it agrees to an extension that was not asked for"),
    Row("101 with a subprotocol", raw(switch(CONNECTION, UPGRADE, ACCEPT, b"Sec-WebSocket-Protocol: soap")), "the server selects a sub-protocol"),
    Row("101 with a body", raw(switch(CONNECTION, UPGRADE, ACCEPT, b"Content-Length: 5"), b"hello"), "the server sent bytes that are not a WebSocket frame"),
    Row("101 and nothing more, closed", raw(switch(CONNECTION, UPGRADE, ACCEPT), then=goes), "the server ended the TCP stream without a close frame"),
    Row("101 twice", raw(switch(CONNECTION, UPGRADE, ACCEPT), switch(CONNECTION, UPGRADE, ACCEPT)), "not conformant"),
]

FRAMES = [
    Row("a reserved bit", says(frame(TEXT, BEAT.encode(), reserved=4)), "a reserved bit is set"),
    Row("all reserved bits", says(frame(TEXT, BEAT.encode(), reserved=7)), "a reserved bit is set"),
    Row("the data opcode 3", says(frame(3)), "the opcode 3 is reserved"),
    Row("the control opcode 11", says(frame(11)), "the opcode 11 is reserved"),
    Row("a masked frame", says(frame(TEXT, b"", mask=b"\0\0\0\0")), "frame is masked"),
    Row("a length of 16 bits for 39 bytes", says(frame(TEXT, BEAT.encode(), width=2)), "not in its shortest form"),
    Row("a length of 64 bits for 39 bytes", says(frame(TEXT, BEAT.encode(), width=8)), "not in its shortest form"),
    Row("a length of 2^63", says(frame(TEXT, b"", promised=1 << 63)), "the server sent bytes that are not a WebSocket frame"),
    Row("a length of 2^62, and then nothing", says(frame(TEXT, b"", promised=1 << 62)), "the server sent a message longer than the limit"),
    Row("16 MiB promised, and then nothing", says(frame(TEXT, b"{", promised=16 * MIB)), "came within 5.0s: the server has sent nothing", arguments=ONE),
    Row("16 MiB promised on each of many connections", says(frame(TEXT, b"{", promised=16 * MIB)), "not conformant", arguments=SUITE, seconds=60),
    Row("a frame of 17 MiB", says(lambda: said(b" " * (17 * MIB))), "the server sent a message longer than the limit"),
    Row("fragments of 17 MiB in all", says(lambda: frame(TEXT, b" " * MIB, fin=False) + frame(0, b" " * MIB, fin=False) * 16), "not conformant", mebibytes=160),
    Row("a fragment of nothing", says(frame(0, b"x")), "continues nothing"),
    Row("a text between fragments", says(frame(TEXT, b"{", fin=False) + said(BEAT)), "the server sent bytes that are not a WebSocket frame"),
    # The flood makes frameproof late on a busy machine: the case is run again then, three times five seconds in all.
    Row("empty fragments for ever", floods(frame(0, b"", fin=False) * 999, frame(TEXT, b"{", fin=False)), "not conformant", arguments=ONE, seconds=30),
    Row("fragments of one byte for ever", floods(frame(0, b" ", fin=False), frame(TEXT, b"{", fin=False), 0.01), "not conformant", seconds=60, arguments=ONE),
    Row("a ping in fragments", says(frame(PING, b"", fin=False)), "the server sent bytes that are not a WebSocket frame (a control"),
    Row("a ping of 126 bytes", says(frame(PING, b"x" * 126)), "longer than 125 bytes"),
    Row("pings for ever", floods(frame(PING, b"x" * 125) * 99), "not conformant", arguments=ONE),
    Row("pongs for ever", floods(frame(PONG, b"x" * 125) * 99), "not conformant", arguments=ONE),
    Row("pings for ever, and nothing is read", says(frame(PING, b"x" * 125) * 99, then=flooding(frame(PING, b"x" * 125) * 99)), "not conformant", arguments=ONE),
    Row("text that is not UTF-8", says(frame(TEXT, b"\xff")), "not UTF-8"),
    Row("UTF-8 of a surrogate", says(frame(TEXT, b"\xed\xa0\x80")), "not UTF-8"),
    Row("UTF-8 that is overlong", says(frame(TEXT, b"\xc0\xaf")), "not UTF-8"),
    Row("UTF-8 that is cut by the end", says(frame(TEXT, b"{\"a\":\"\xe2\x82")), "not UTF-8"),
    Row("binary instead of text", says(frame(BINARY, BEAT.encode())), "the frame is binary, not text"),
    Row("binary of 15 MiB", says(lambda: frame(BINARY, b"\0" * (15 * MIB))), "not conformant", mebibytes=300),
    Row("half a frame, then closed", says(frame(TEXT, b"half", promised=99), then=goes), "the server ended the TCP stream without a close frame"),
    Row("half a frame, then a reset", says(frame(TEXT, b"half", promised=99), then=reset), "not conformant"),
    Row("one byte of a header, and then nothing", says(b"\x81"), "came within 5.0s: the server has sent nothing", arguments=ONE),
    Row("HTTP in place of frames", says(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 99), "the server sent bytes that are not a WebSocket frame"),
    Row("zeros in place of frames", floods(b"\0" * 65536), "not conformant", arguments=ONE),
]

CLOSES = [
    *(Row(f"close {code}", says(closing(code)), f"a close frame has the code {code}") for code in (0, 999, 1004, 1005, 1006, 1015, 2999, 65535)),
    Row("close 1000 at once", says(closing(1000)), "the server closed the connection with code 1000 instead of"),
    Row("close 1011 with a reason", says(closing(1011, b"sorry")), "the server closed the connection with code 1011 instead of"),
    Row("a close of one byte", says(frame(CLOSE, b"\x03")), "one byte, which is no code"),
    Row("a close of 126 bytes", says(frame(CLOSE, b"\x03\xe8" + b"x" * 124)), "longer than 125 bytes"),
    Row("a reason that is not UTF-8", says(closing(1000, b"\xff")), "the server sent bytes that are not a WebSocket frame (a text is"),
    Row("a close reason with escape sequences", says(closing(4000, b"\x1b[2J::error::x")), "the server closed the connection with code 4000 instead of"),
    Row("data after a close", says(closing(1000) + said(BEAT)), "follows a close frame"),
    Row("two closes", says(closing(1000) * 2), "not conformant"),
    Row("a close, then a flood", says(closing(1000) + said(BEAT), then=flooding(said(BEAT) * 99)), "follows a close frame", arguments=ONE),
    Row("a close, and the connection stays open", says(closing(1001)), "not conformant"),
    Row("disconnects without a close frame", says(said(BEAT), then=goes), "not conformant"),
]

MESSAGES = [
    Row("an empty text", answers(said("")), "the frame is not JSON: EOF while parsing a value"),
    Row("no JSON", answers(said("<html>")), "the frame is not JSON: expected value"),
    Row("cut JSON", answers(said('{"type":"heart')), "the frame is not JSON: EOF while parsing a string"),
    Row("two documents in one frame", answers(said(BEAT + BEAT)), "the frame is not JSON: trailing characters"),
    Row("JSON with a comment", answers(said("/* x */" + BEAT)), "the frame is not JSON: expected value"),
    Row("a byte order mark", answers(said("\ufeff" + BEAT)), "the frame is not JSON: expected value"),
    Row("UTF-16", answers(frame(TEXT, BEAT.encode("utf-16-le"))), "the frame is not JSON: key must be a string"),
    Row("an array", answers(said("[" + BEAT + "]")), "the frame is an array, not a JSON object"),
    Row("a string", answers(said('"heartbeat"')), "the frame is a string, not a JSON object"),
    Row("null", answers(said("null")), "the frame is null, not a JSON object"),
    Row("a type that is a number", answers(said('{"type":1}')), "/type must be a string, not 1"),
    Row("a type of 15 MiB", answers(lambda: typed("t" * (15 * MIB))), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("a type with escape sequences", answers(said('{"type":"\\u001b[2J\\u0007\\u009b"}')), "the server may not send a message `\\u{1b}[2J\\u{7}\\u{9b}`"),
    Row("a type with bidirectional control characters", answers(typed("\u202egnp.exe\u2066\u061c\u00ad")), "the server may not send a message"),
    Row("a type that is a command for a CI runner", answers(typed("\\n::error::x\\n##[error]x ##vso[task.complete]")), "the server may not send a message"),
    Row("a type that ends CDATA", answers(typed("]]><!--&\\u0000\\uffff")), "the server may not send a message `]]><!--&\\u{0}\\u{ffff}`"),
    Row("a lone surrogate", answers(beat('"x":"\\ud800"')), "the frame is not JSON: a lone surrogate, which is no Unicode"),
    Row("a key twice", answers(beat('"type":"welcome"')), "the key"),
    Row("a key of 7 MiB twice", answers(lambda: said("{" + ",".join(['"' + "k" * (7 * MIB) + '":1'] * 2) + "}")), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("the key __proto__", answers(beat('"__proto__":{"type":"welcome"}')), "heartbeat: `__proto__` is not declared"),
    Row("NaN", answers(said('{"type":"heartbeat","interval_ms":NaN}')), "the frame is not JSON: expected value"),
    Row("1e999999999", answers(said('{"type":"heartbeat","interval_ms":1e999999999}')), "the frame is not JSON: number out of range"),
    Row("a number of a million digits", answers(lambda: said('{"type":"heartbeat","interval_ms":' + "9" * 1_000_000 + "}")), "not conformant", seconds=30),
    Row("an id of 2^64", answers(said('{"type":"user_text","text":"x","event_id":18446744073709551616}')), "event_id grows strictly, in arrival order, on each connection:"),
    Row("an id below zero", answers(said('{"type":"user_text","text":"x","event_id":-1}')), "user_text: /event_id: -1 must be at least 0"),
    Row("the same id for ever", floods(said('{"type":"user_text","text":"x","event_id":1}'), every=0.001), "not conformant", seconds=60, mebibytes=300, arguments=ONE),
    Row("an id of 1 MiB", answers(lambda: said('{"type":"accepted","req_id":"' + "i" * MIB + '"}')), "not conformant", seconds=60, mebibytes=300),
    Row("100,000 brackets", answers(lambda: beat('"x":' + "[" * 100_000 + "]" * 100_000)), "the frame nests deeper than 64 levels"),
    Row("15 MiB of open brackets", answers(lambda: said("[" * (15 * MIB))), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("15 MiB of white space", answers(lambda: said(" " * (15 * MIB))), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("a string of 15 MiB", answers(lambda: said('"' + "s" * (15 * MIB) + '"')), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("a string of 15 MiB of escapes", answers(lambda: beat('"x":"' + "\\u0041" * (15 * MIB // 6) + '"')), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("1,000 unknown keys", answers(lambda: keys(1000)), "more violations of MC-ENV-13 in this case"),
    Row("400,000 unknown keys", answers(lambda: keys(400_000)), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("16,000 wrong items", answers(lambda: items("{}", 8000)), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("2,000,000 wrong items", answers(lambda: items("{}", 1_000_000)), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("7,000,000 numbers", answers(lambda: items("0", 3_500_000)), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("heartbeats for ever", floods(said(BEAT) * 99), "not conformant", seconds=60, mebibytes=300, arguments=ONE),
    Row("wrong messages for ever", floods(typed("x") * 99), "not conformant", seconds=60, mebibytes=300, arguments=ONE),
    Row("messages of 1 MiB for ever", floods(beat('"x":"' + "x" * MIB + '"')), "not conformant", arguments=SUITE, seconds=60, mebibytes=300),
    Row("repeats its client's messages", echoes, "the server may not send a message `hello`"),
    Row("repeats its client's request, with secrets", mirror, "not conformant", arguments=(*HANDSHAKE, "--header", "Authorization: env:HOSTILE_TOKEN")),
]

TIMES = [
    Row("greets and is silent", answers(b""), "came within 5.0s: the server has sent nothing", seconds=30, arguments=ONE),
    Row("greets and is silent: the whole suite", says(said('{"type":"welcome","v":"1.0.0"}')), "not conformant", arguments=SUITE, seconds=60),
    Row("never reads", reads_nothing, "came within 5.0s: the server has sent nothing", seconds=30, arguments=ONE),
    Row("a message every 4.5 s", floods(said(BEAT), every=4.5), "not conformant", arguments=(*SUITE[:-4], "--time", "10s"), code=1, seconds=40),
]

TLS = [
    Row("wss:// to a server without TLS", raw(http(b"400 Bad Request"), then=goes), "has not ended the TLS handshake within 5s", code=HARNESS, arguments=tuple("WSS" if each == "URL" else each for each in HANDSHAKE)),
]
WSS = TLS[0].arguments
TLS += [
    Row("is silent after ClientHello", lambda: read_on, "has not ended the TLS handshake within 5s", code=HARNESS, arguments=WSS, seconds=30),
    Row("disconnects after ClientHello", lambda: lambda conn: (conn.recv(4096), conn.close()), "TLS: the server ended the connection during the TLS handshake;", code=HARNESS, arguments=WSS),
    Row("a TLS alert", at_once(b"\x15\x03\x03\x00\x02\x02\x28", then=goes), "TLS: received fatal alert: HandshakeFailure", code=HARNESS, arguments=WSS),
    Row("TLS 1.0", at_once(b"\x16\x03\x01\x00\x2a\x02\x00\x00\x26\x03\x01" + b"\0" * 32 + b"\0\0\x2f\0", then=goes), "TLS: peer is incompatible: ServerDoesNotSupportTls12Or13", code=HARNESS, arguments=WSS),
    Row("a TLS record of 65,535 bytes", at_once(b"\x16\x03\x03\xff\xff" + b"x" * 65535), "TLS: the server does not speak TLS; is it a ws:// server?", code=HARNESS, arguments=WSS),
    Row("TLS records without end", at_once(then=flooding(b"\x16\x03\x03\x40\x00" + b"\x02\xff\xff\xff" + b"x" * 16380)), "TLS: the server does not speak TLS; is it a ws:// server?", code=HARNESS, arguments=WSS),
    Row("TLS records a byte at a time", at_once(then=lambda conn: [conn.sendall(b"\x16") or time.sleep(0.05) for _ in range(9999)]), "TLS: the server does not speak TLS; is it a ws:// server?", code=HARNESS, arguments=WSS, seconds=30),
    Row("a certificate of an unknown authority", answers(said(BEAT)), "TLS: no trusted authority has signed the server's certificate", code=HARNESS, arguments=WSS, tls="server"),
    Row("a certificate of another name", answers(said(BEAT)), "TLS: the server's certificate is for another name (invalid peer", code=HARNESS, arguments=(*WSS, *TRUSTED), tls="other"),
    Row("the right certificate, then a flood", floods(said(BEAT) * 99), "not conformant", arguments=(*WSS[:2], ONE[2], *WSS[3:], *TRUSTED), tls="server", seconds=60, mebibytes=300),
    Row("the right certificate, then half a record", lambda: lambda conn: (upgrade(conn), conn.unwrap()), "the server ended the TCP stream without a close frame", arguments=(*WSS, *TRUSTED), tls="server"),
]

# What hurt `run` is done to the other commands, too: what each says of it, and how it may end. Whether a campaign gets as far as a finding before
# its time is up depends on the machine; that it is none that passes does not.
SAID = {
    "accepts, reads and sends nothing": ("sent no HTTP answer to the upgrade", HARNESS),
    "accepts and disconnects": ("the connection broke during the upgrade", HARNESS),
    "a frame of 17 MiB": ("longer than the limit", FAILED),
    "pings for ever": ("welcome did not come within", FAILED),
    "7,000,000 numbers": ("", FAILED),
    "400,000 unknown keys": ("", FAILED),
    "greets and is silent": ("welcome did not come within", FAILED),
}
OTHERS = [
    Row(f"{command[0]}: {name}", kept(name).make, said_of, FAILED if command is DOCTOR else code, command, 60, 300, also=None if command is DOCTOR else NOTHING)
    for command in (DOCTOR, FUZZ, EXPLORE)
    for name, (said_of, code) in SAID.items()
]


def unending(build):
    """Upgrades, then writes this for ever: it is made in the server's process alone."""
    return lambda: floods(build())()


def padded(count):
    """A valid message of so many bytes."""
    return said(BEAT[:-1] + " " * count + "}")


# Each frame takes a while to judge, and the next one waits already.
LARGE = {
    "numbers": unending(lambda: items("0", 15 * MIB // 4)),
    "messages": unending(lambda: items('{"type":"assistant.delta","text":"' + "x" * 60 + '","id":17}', 15 * MIB // 200)),
}
ENDED = {
    "run": ("run", "minicodex", "--url", "URL", "-j", "8", "--repeat", "1000", "--junit", "j.xml", "--json", "e.jsonl"),
    "fuzz": (*FUZZ[:4], "--time", "60s", "-j", "8", "--junit", "j.xml"),
}
SIGNALS = [
    Row(f"{command}: told to end while frames of 15 MiB of {name} come", make, "interrupted", code=INTERRUPTED, arguments=arguments, seconds=3, mebibytes=300, ended=2)
    for command, arguments in ENDED.items()
    for name, make in LARGE.items()
]
# A campaign keeps nothing of what came, and repeats alone what was too much together.
CAMPAIGNS = [
    Row("fuzz: messages of 900 KiB for ever, eight cases at a time", unending(lambda: padded(900 << 10)), "FAIL limit in state opened: the server sent more in one case than is kept of it", arguments=(*FUZZ[:4], "--iterations", "8", "--time", "8s", "-j", "8", "--junit", "j.xml"), seconds=60, mebibytes=176),
    Row("fuzz: 15 MiB of numbers for ever, eight cases at a time", LARGE["numbers"], "so many values", arguments=(*FUZZ, "-j", "8"), seconds=60, mebibytes=160),
]

FURTHER = further.servers(Row, ONE, SUITE, HANDSHAKE)

ROWS = [*CONNECTS, *ANSWERS, *FRAMES, *CLOSES, *MESSAGES, *TIMES, *TLS, *OTHERS, *SIGNALS, *CAMPAIGNS, *FURTHER]
