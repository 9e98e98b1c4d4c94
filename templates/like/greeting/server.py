"""A server of the protocol in this folder, to be replaced by yours. Usage: python3 server.py PORT"""
import asyncio
import json
import os
import sys
import uuid

try:
    from websockets.asyncio.server import serve
    from websockets.exceptions import ConnectionClosed
except ModuleNotFoundError:
    sys.exit("server.py needs the module websockets, 13 or newer: python3 -m pip install websockets")

DEFECT = os.environ.get("DEFECT")  # set by the mutants of frameproof.toml


def parse(text):
    """The JSON of a message; None if there is none."""
    try:
        message = json.loads(text) if isinstance(text, str) else None
        json.dumps(message, ensure_ascii=False).encode()  # fails for half of a surrogate pair, which is not Unicode
        return message
    except (ValueError, RecursionError):
        return None


def mistake(message):
    """The error of an invalid command; None for a valid one."""
    if not isinstance(message, dict):
        return "not a JSON object"
    if message.get("type") not in ("hello", "say", "ping", "bye"):
        return "no such command"
    field = {"say": "text", "ping": "n"}.get(message["type"])
    if field and not isinstance(message.get(field), str):
        return f"{field} must be a string"
    return None


async def converse(socket):
    async def send(kind, **fields):
        await socket.send(json.dumps({"type": kind, **fields}))

    seq, greeted = 0, False
    async for text in socket:
        message = parse(text)
        wrong = mistake(message)
        kind = None if wrong else message["type"]
        if not greeted and kind != "hello":
            return await socket.close(4401, "hello first")
        if wrong or (greeted and kind == "hello"):
            await send("error", message=wrong or "hello comes once")
        elif kind == "hello":
            greeted = True
            await send("welcome", room=str(uuid.uuid4()))
        elif kind == "say":
            await send("said", text=message["text"], seq=seq + 1)
            await send("done", seq=seq + (1 if DEFECT == "numbers-repeat" else 2))
            seq += 2
        elif kind == "ping":
            await send("pong", n=message["n"])
        else:
            return await socket.close(1000 if DEFECT == "bye-closes-with-1000" else 4000, "bye")


async def handle(socket):
    try:
        await converse(socket)
    except ConnectionClosed:
        pass  # the client has disconnected


async def main():
    async with serve(handle, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
