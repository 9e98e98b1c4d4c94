"""A small agent server that speaks MiniCodex v1, with OpenAI's SDK behind it.

OPENAI_BASE_URL and OPENAI_API_KEY say where the model is. `--bugs NAME,NAME` puts mistakes in that servers really make:

late-answer       the run is said to be finished before the last piece of its answer
foreign-snapshot  a snapshot goes to the client of the session that came last, whoever asked
error-as-text     what the provider complains about is shown as if the assistant had said it
"""

import argparse
import asyncio
import json
import socket
import uuid

import openai
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from commands import Abort, Approve, Deny, GetSnapshot, Hello, Ping, Refused, Resume, Send, parse
from session import VERSION, Session

BUGS = {"late-answer", "foreign-snapshot", "error-as-text"}
HEARTBEAT_MS = 1000
# Numbers of frames that wait for a client: from the first it gets drain, below the second ok, from the third it is disconnected.
DRAIN, OK, LIMIT = 64, 8, 20_000
# Bytes that the system buffers for a client: further frames wait here, where they are counted.
BUFFER = 32 << 10


class Client:
    """A connection, and the frames that wait for it."""

    def __init__(self, socket: ServerConnection, server: "Server"):
        self.socket, self.server = socket, server
        self.session: Session | None = None
        self.frames: asyncio.Queue[str] = asyncio.Queue()
        self.is_behind = False

    def put(self, frame: dict) -> None:
        # Serialised now, because the data may change before the frame is sent.
        self.frames.put_nowait(json.dumps(frame, ensure_ascii=False))
        waiting = self.frames.qsize()
        if waiting > DRAIN and not self.is_behind:
            self.is_behind = True
            self.put({"type": "backpressure", "state": "drain"})
        if waiting > LIMIT:
            self.socket.transport.abort()

    async def write(self) -> None:
        while True:
            await self.socket.send(await self.frames.get())
            if self.is_behind and self.frames.qsize() < OK:
                self.is_behind = False
                self.put({"type": "backpressure", "state": "ok"})

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_MS / 1000)
            self.put({"type": "heartbeat", "interval_ms": HEARTBEAT_MS})

    def answer(self, text: str | bytes) -> None:
        req_id = None
        try:
            command = parse(text)
            req_id = command.req_id
            if self.session is None:
                self.open(command)
            else:
                self.obey(command)
        except Refused as refused:
            self.put(self.bearing(req_id if refused.req_id is None else refused.req_id, {
                "type": "error", "code": refused.code, "message": refused.message,
            }))

    @staticmethod
    def bearing(req_id: str | None, frame: dict) -> dict:
        return frame if req_id is None else {**frame, "req_id": req_id}

    def open(self, command) -> None:
        if not isinstance(command, Hello | Resume):
            raise Refused("INVALID_COMMAND", "say hello first")
        if command.v is not None and command.v.split(".")[0] != VERSION.split(".")[0]:
            raise Refused("BAD_ARGUMENT", f"this server speaks {VERSION}")
        self.session = session = self.server.session(command.session_id)
        welcome = {"type": "welcome", "v": VERSION, "session_state": session.state()}
        self.put(self.bearing(command.req_id, welcome))
        if isinstance(command, Hello) or command.last_seen_event_id is None:
            self.put(session.snapshot(with_transcript=True))
        else:
            missed = session.missed_since(command.last_seen_event_id)
            if missed is None:
                message = "these events are not kept: ask for a snapshot with get_snapshot"
                self.put(self.bearing(command.req_id, {"type": "error", "code": "REPLAY_GAP", "message": message}))
            for event in missed or []:
                self.put(event)
        session.clients.append(self)

    def obey(self, command) -> None:
        session = self.session

        def accept() -> None:
            self.put(self.bearing(command.req_id, {"type": "accepted"}))

        match command:
            case Hello() | Resume():
                raise Refused("INVALID_COMMAND", "this connection is open already")
            case Send():
                session.send(command.text, command.client_msg_id, accept)
            case Approve() | Deny():
                session.decide(command.call_id, isinstance(command, Approve), accept)
            case Abort():
                session.abort(command.run_id, accept)
            case GetSnapshot():
                asker = session.clients[-1] if "foreign-snapshot" in self.server.bugs else self
                asker.put(self.bearing(command.req_id, session.snapshot(command.include_transcript_window)))
            case Ping():
                # The heartbeat is the answer.
                pass


class Server:
    def __init__(self, bugs: frozenset[str]):
        self.bugs = bugs
        self.model = openai.AsyncOpenAI()
        self.sessions: dict[str, Session] = {}

    def session(self, session_id: str | None) -> Session:
        session_id = session_id or str(uuid.uuid4())
        if session_id not in self.sessions:
            self.sessions[session_id] = Session(session_id, self.model, self.bugs)
        return self.sessions[session_id]

    async def handle(self, connection: ServerConnection) -> None:
        connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        client = Client(connection, self)
        tasks = [asyncio.create_task(client.write()), asyncio.create_task(client.beat())]
        try:
            async for text in connection:
                client.answer(text)
        except ConnectionClosed:
            pass
        finally:
            if client.session is not None and client in client.session.clients:
                client.session.clients.remove(client)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--bugs", default="", metavar="NAME,NAME", help="deliberate mistakes; `all`: all of them")
    arguments = parser.parse_args()
    bugs = frozenset(BUGS if arguments.bugs == "all" else filter(None, arguments.bugs.split(",")))
    if unknown := bugs - BUGS:
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    server = Server(bugs)
    options = {"max_size": 1 << 20, "write_limit": BUFFER, "compression": None, "ping_interval": None}
    async with serve(server.handle, "127.0.0.1", arguments.port, **options):
        print(f"listening on ws://127.0.0.1:{arguments.port}/ws", flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
