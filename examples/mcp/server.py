"""A server of PyPI's `mcp` over WebSocket, to test. Usage: python server.py PORT"""

import asyncio
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.websocket import websocket_server
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

mcp = FastMCP("example", log_level="WARNING")


class Sum(BaseModel):
    sum: int


@mcp.tool()
def add(a: int, b: int) -> Sum:
    """The sum of two numbers."""
    return Sum(sum=a + b)


@mcp.tool()
async def count(to: int, every: int, context: Context) -> str:
    """Counts, with a pause in milliseconds, and reports each step."""
    for step in range(1, to + 1):
        await asyncio.sleep(every / 1000)
        await context.report_progress(step, to)
    return "done"


@mcp.tool()
async def tell(text: str, context: Context) -> str:
    """Writes a log message."""
    await context.info(text)
    return "told"


@mcp.tool()
def fail(reason: str) -> str:
    """Fails."""
    raise ValueError(reason)


@mcp.resource("memo://one")
def one() -> str:
    """A memo."""
    return "the first memo"


@mcp.prompt()
def greet(who: str) -> str:
    """A greeting."""
    return f"Greet {who}."


async def serve(websocket):
    server = mcp._mcp_server
    async with websocket_server(websocket.scope, websocket.receive, websocket.send) as (read, write):
        await server.run(read, write, server.create_initialization_options())


app = Starlette(routes=[WebSocketRoute("/ws", serve)])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
