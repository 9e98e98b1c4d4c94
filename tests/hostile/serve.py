"""Serves one behaviour in a process of its own: prints the port, then acts on each connection until it is ended."""

import contextlib
import socket
import ssl
import sys
import threading
from pathlib import Path

import servers

HERE = Path(__file__).parent


def main(name):
    row = next(row for row in servers.ROWS if row.name == name)
    act = row.make()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1 if row.deaf else 128)
    print(listener.getsockname()[1], flush=True)
    if row.deaf:
        threading.Event().wait()
    tls = None
    if row.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(HERE / "certificates" / f"{row.tls}.pem")
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=once, args=(conn, act, tls), daemon=True).start()


def once(conn, act, tls):
    # The client may go at any moment: then the connection is over.
    with contextlib.suppress(OSError, ValueError), conn:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            conn = tls.wrap_socket(conn, server_side=True)
        act(conn)


if __name__ == "__main__":
    main(sys.argv[1])
