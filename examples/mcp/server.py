"""A server of PyPI's `mcp` over WebSocket, to test. Usage: python server.py PORT"""

import asyncio
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.prompts.base import UserMessage
from mcp.server.websocket import websocket_server
from mcp.shared.exceptions import McpError
from mcp.types import INVALID_PARAMS, Completion, EmbeddedResource, ErrorData, ImageContent, TextResourceContents
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

mcp = FastMCP("example", log_level="WARNING")


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


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


@mcp.tool()
async def ask(context: Context) -> str:
    """Asks the user for a name."""
    result = await context.elicit("Who are you?", Name)
    return f"{result.action}: {result.data.name}" if result.action == "accept" else result.action


@mcp.resource("memo://one")
def one() -> str:
    """A memo."""
    return "the first memo"


@mcp.resource("memo://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    """Three bytes."""
    return b"\x00\xff\x7f"


@mcp.resource("memo://of/{who}")
def memo_of(who: str) -> str:
    """The memo of somebody."""
    return f"the memo of {who}"


@mcp.prompt()
def greet(who: str) -> str:
    """A greeting."""
    return f"Greet {who}."


@mcp.prompt()
def look() -> list[UserMessage]:
    """A picture and a memo."""
    memo = TextResourceContents(uri="memo://one", mimeType="text/plain", text="the first memo")
    return [
        UserMessage(ImageContent(type="image", data="AAECAw==", mimeType="image/png")),
        UserMessage(EmbeddedResource(type="resource", resource=memo)),
    ]


@mcp.completion()
async def complete(reference, argument, context):
    if getattr(reference, "name", None) != "greet":
        raise McpError(ErrorData(code=INVALID_PARAMS, message="there is nothing to complete"))
    names = ["you", "your friend", "everybody"]
    return Completion(values=[name for name in names if name.startswith(argument.value)])


async def serve(websocket):
    server = mcp._mcp_server
    async with websocket_server(websocket.scope, websocket.receive, websocket.send) as (read, write):
        await server.run(read, write, server.create_initialization_options())


app = Starlette(routes=[WebSocketRoute("/ws", serve)])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
