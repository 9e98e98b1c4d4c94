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
METHODS = {"initialize": {}, "add": {"a": int, "b": int}, "count": {"to": int, "token": str}, "ping": {}}


class Mistake(Exception):
    """A request that is answered with an error: code and message."""


def integer(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value % 1 == 0


def parse(text):
    try:
        message = json.loads(text)
        json.dumps(message, ensure_ascii=False).encode()  # fails for half of a surrogate pair, which is not Unicode
    except (ValueError, RecursionError):
        raise Mistake(-32700, "this is not JSON") from None
    return message


def request_id(message):
    """The id under which a message is answered; None if it has no valid one."""
    value = message.get("id") if isinstance(message, dict) else None
    return value if isinstance(value, str) or integer(value) else None


def check(message):
    """Raises the error of an invalid request."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise Mistake(-32600, "this is no request")
    if "id" in message and request_id(message) is None:
        raise Mistake(-32600, "an id is a string or an integer")
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise Mistake(-32602, "params must be an object")
    for name, kind in METHODS.get(message["method"], {}).items():
        value = params.get(name)
        if kind is str and not isinstance(value, str):
            raise Mistake(-32602, f"{name} must be a string")
        if kind is int and not (integer(value) and 0 <= value <= 100):
            raise Mistake(-32602, f"{name} must be an integer from 0 to 100")


async def call(message, initialized, notify):
    """The result of a request."""
    method, params = message["method"], message.get("params", {})
    if method not in METHODS:
        raise Mistake(-32601, "there is no such method")
    if not initialized and method != "initialize":
        raise Mistake(-32002, "initialize first")
    if method == "initialize":
        return {"server": "rpc"}
    if method == "add":
        return {"sum": params["a"] + params["b"]}
    for at in range(int(params["to"]) if method == "count" else 0):
        await notify("progress", {"token": params["token"], "at": at + 1})
    return {}


async def converse(socket):
    async def send(**message):
        await socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def notify(method, params):
        await send(method=method, params=params)

    initialized = False
    async for text in socket:
        if isinstance(text, bytes):
            return await socket.close(1003, "text only")
        message = None
        try:
            message = parse(text)
            check(message)
            if message["method"] == "exit" and "id" not in message:
                return await socket.close(1000 if DEFECT == "exit-closes-with-1000" else 4000, "exit")
            if "id" not in message:
                continue  # an unknown notification
            result = await call(message, initialized, notify)
            initialized = True
            for _ in range(2 if DEFECT == "answers-twice" and message["method"] == "add" else 1):
                await send(id=message["id"], result=result)
        except Mistake as mistake:
            code, why = mistake.args
            await send(id=request_id(message), error={"code": code, "message": why})


async def handle(socket):
    try:
        await converse(socket)
    except ConnectionClosed:
        pass  # the client has disconnected


async def main():
    async with serve(handle, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
