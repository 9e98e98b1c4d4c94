"""A server of the protocol in this folder, to be replaced by yours. Usage: python3 server.py PORT"""
import asyncio
import json
import os
import sys

try:
    from websockets.asyncio.server import serve
    from websockets.exceptions import ConnectionClosed
except ModuleNotFoundError:
    sys.exit("server.py needs the module websockets, 13 or newer: python3 -m pip install websockets")

DEFECT = os.environ.get("DEFECT")  # set by the mutants of frameproof.toml


def is_text(value):
    return isinstance(value, str) and value != ""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value % 1 == 0 and 0 <= value <= 100


FIELDS = {"init": {}, "ping": {}, "subscribe": {"id": is_text, "to": is_number, "every_ms": is_number}, "complete": {"id": is_text}}


def parse(text):
    """A valid message, or None."""
    try:
        message = json.loads(text) if isinstance(text, str) else None
        json.dumps(message, ensure_ascii=False).encode()  # fails for half of a surrogate pair, which is not Unicode
    except (ValueError, RecursionError):
        return None
    kind = message.get("type") if isinstance(message, dict) else None
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    valid = fields is not None and all(fits(message.get(name)) for name, fits in fields.items())
    return message if valid else None


async def converse(socket, running):
    async def send(kind, **fields):
        await socket.send(json.dumps({"type": kind, **fields}))

    async def count(name, to, every_ms):
        for value in range(1, to + 1):
            await asyncio.sleep(every_ms / 1000)
            await send("next", id=name, value=value)
        del running[name]
        await send("complete", id=name)
        if DEFECT == "value-after-complete":
            await send("next", id=name, value=to + 1)

    ready = False
    async for text in socket:
        message = parse(text)
        if message is None:
            return await socket.close(4400, "invalid message")
        kind, name = message["type"], message.get("id")
        if kind == "ping":
            await send("pong")
        elif kind == "init" and not ready:
            ready = True
            await send("ready")
        elif kind == "init":
            return await socket.close(4429, "init comes once")
        elif not ready:
            return await socket.close(4401, "init first")
        elif kind == "complete":
            if task := running.pop(name, None):
                task.cancel()
        elif name in running:
            return await socket.close(4400 if DEFECT == "second-id-closes-with-4400" else 4409, "the id is in use")
        else:
            running[name] = asyncio.create_task(count(name, int(message["to"]), message["every_ms"]))


async def handle(socket):
    running = {}
    try:
        await converse(socket, running)
    except ConnectionClosed:
        pass  # the client has disconnected
    finally:
        for task in running.values():
            task.cancel()


async def main():
    async with serve(handle, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
