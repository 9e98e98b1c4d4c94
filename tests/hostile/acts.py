"""What is done with a connection: each function yields one that makes the act, for what it says may be large."""

import itertools
import time

from wire import accept_of, for_ever, frame, read_on, request, said, upgrade


def raw(*parts, then=read_on):
    """Answers the request with these bytes as they are."""

    def make():
        def act(conn):
            asked = request(conn)
            for part in parts:
                conn.sendall(part(asked) if callable(part) else part)
            then(conn)

        return act

    return make


def at_once(*parts, then=read_on):
    """Says these bytes before anything is asked."""

    def make():
        def act(conn):
            for part in parts:
                conn.sendall(part)
            then(conn)

        return act

    return make


def says(build, then=read_on, lines=b""):
    """Upgrades, then says these bytes at once."""

    def make():
        first = build() if callable(build) else build

        def act(conn):
            upgrade(conn, lines)
            conn.sendall(first)
            then(conn)

        return act

    return make


def answers(build):
    """Upgrades, then answers whatever comes with these bytes."""

    def make():
        each = build() if callable(build) else build

        def act(conn):
            upgrade(conn)
            while conn.recv(1 << 16):
                conn.sendall(each)

        return act

    return make


def floods(chunk, first=b"", every=0.0):
    """Upgrades, then writes for ever."""

    def make():
        def act(conn):
            upgrade(conn)
            conn.sendall(first)
            while True:
                conn.sendall(chunk)
                time.sleep(every)

        return act

    return make


def drips(data, every):
    """Answers the request with these bytes, one at a time, and then again."""

    def make():
        def act(conn):
            request(conn)
            for byte in itertools.cycle(data):
                conn.sendall(bytes([byte]))
                time.sleep(every)

        return act

    return make


def goes(conn):
    """Ends the connection."""
    conn.close()


def flooding(chunk):
    """Goes on with this for ever."""
    return lambda conn: for_ever(conn, chunk)


def http(status, headers=b"", body=b""):
    """A response."""
    return b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n" + body


SWITCH = b"HTTP/1.1 101 Switching Protocols\r\n"


def switch(*lines):
    """An answer to an upgrade made of these lines; ACCEPT is the right one."""

    def build(asked):
        return SWITCH + b"".join(line.replace(b"ACCEPT", accept_of(asked)) + b"\r\n" for line in lines) + b"\r\n"

    return build


CONNECTION, UPGRADE, ACCEPT = b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Accept: ACCEPT"
BEAT = '{"type":"heartbeat","interval_ms":15000}'


def beat(text):
    """A heartbeat with something more in it."""
    return said(BEAT[:-1] + "," + text + "}")


def items(item, count):
    """A snapshot with very many items."""
    many = ",".join([item] * count)
    return said('{"type":"snapshot","run_state":{},"events":[' + many + '],"messages":[' + many + "]}")


def keys(count):
    """A heartbeat with very many keys."""
    return beat(",".join(f'"k{n}":{n}' for n in range(count)))


def typed(text):
    """A message of this type."""
    return said('{"type":"' + text + '"}')


def mirror():
    """Sends the client's request back, with all its headers, as a message."""

    def act(conn):
        asked = upgrade(conn)
        conn.sendall(said('{"type":"error","message":' + repr(asked.decode("latin-1")).replace("'", '"') + "}"))
        read_on(conn)

    return act


def echoes():
    """Sends back what comes, unmasked."""

    def act(conn):
        upgrade(conn)
        while True:
            head = conn.recv(2)
            if len(head) < 2:
                return
            length = head[1] & 0x7F
            if length == 126:
                length = int.from_bytes(conn.recv(2), "big")
            mask = conn.recv(4)
            payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(conn.recv(length)))
            conn.sendall(frame(head[0] & 0xF, payload))

    return act


def reads_nothing():
    """Upgrades, and never reads again."""

    def act(conn):
        upgrade(conn)
        time.sleep(600)

    return act
