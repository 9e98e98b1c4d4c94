"""Ping-pong loops against a server, as benches/fuzz.rs does them, with Python's `websockets`.

    pip install websockets
    python benches/peers/pingpong.py URL [CONNECTIONS] [SECONDS]

URL is what `frameproof serve minicodex` prints.
"""

import asyncio
import sys
import time

import websockets

HELLO = '{"type":"hello","v":"1.0.0","client_capabilities":["approvals","replay","reasoning"]}'
PING = '{"type":"ping","nonce":1}'


async def one(url: str, until: float) -> int:
    count = 0
    async with websockets.connect(url, compression=None) as socket:
        await socket.send(HELLO)
        while time.monotonic() < until:
            await socket.send(PING)
            while '"error"' not in await socket.recv():
                pass
            count += 1
    return count


async def main() -> None:
    url = sys.argv[1]
    connections = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 4
    start = time.monotonic()
    counts = await asyncio.gather(*(one(url, start + seconds) for _ in range(connections)))
    print(f"{connections:>2} side by side: {sum(counts) / (time.monotonic() - start):.0f}/s")


asyncio.run(main())
