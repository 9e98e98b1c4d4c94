"""Frames of a server as bytes, right and wrong, and the answer to an upgrade."""

import base64
import hashlib
import socket
import struct

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(opcode, payload=b"", fin=True, reserved=0, mask=None, width=None, promised=None):
    """A frame. `width`: bytes of the length, for one that is not in its shortest form; `promised`: a length that is not the payload's."""
    length = len(payload) if promised is None else promised
    if width is None:
        width = 0 if length < 126 else 2 if length < 1 << 16 else 8
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    bit = 0x80 if mask is not None else 0
    head += {0: bytes([bit | (length & 0x7F)]), 2: bytes([bit | 126]), 8: bytes([bit | 127])}[width]
    head += {0: b"", 2: struct.pack(">H", length & 0xFFFF), 8: struct.pack(">Q", length)}[width]
    return head + (mask or b"") + payload


def said(text):
    """A text frame."""
    return frame(TEXT, text if isinstance(text, bytes) else text.encode())


def closing(code, reason=b""):
    """A close frame."""
    return frame(CLOSE, struct.pack(">H", code) + reason)


def request(conn):
    """What the client asks, up to the empty line; empty where it goes before that."""
    asked = b""
    while b"\r\n\r\n" not in asked:
        more = conn.recv(4096)
        if not more:
            return b""
        asked += more
    return asked


def accept_of(asked):
    """The answer to the key of a request."""
    key = next(
        (line.split(b":", 1)[1].strip() for line in asked.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:")),
        b"",
    )
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def upgrade(conn, lines=b""):
    """Takes the upgrade; `lines` are added to the answer. What the client has asked."""
    asked = request(conn)
    conn.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "
        + accept_of(asked)
        + b"\r\n"
        + lines
        + b"\r\n"
    )
    return asked


def read_on(conn):
    """Reads until the client goes."""
    while conn.recv(1 << 16):
        pass


def for_ever(conn, chunk):
    """Writes until the client goes."""
    while True:
        conn.sendall(chunk)


def reset(conn):
    """Ends the connection with a reset instead of a close."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()
