"""The notes tools, and which of them need approval."""

import asyncio

TEXT = {"type": "string"}


def tool(name: str, about: str, **properties) -> dict:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


TOOLS = [
    tool("read_note", "Read a note.", key=TEXT),
    tool("write_note", "Write a note.", key=TEXT, text=TEXT),
    tool("slow_note", "Take a while.", ms={"type": "integer"}),
    tool("secret_note", "Read what is nobody's business."),
    tool("fail_note", "Fail.", message=TEXT),
]
GUARDED = {"write_note"}
DENIED = {"secret_note"}


class Notes:
    """The notes of one session."""

    def __init__(self):
        self.texts: dict[str, str] = {}

    async def run(self, name: str, args: dict) -> dict:
        """The result of the tool, as an MCP CallToolResult."""
        try:
            return result(await self.call(name, args))
        except (KeyError, TypeError, ValueError) as error:
            return result(f"{name}: {error}", is_error=True)

    async def call(self, name: str, args: dict) -> str:
        if name in DENIED:
            raise ValueError("this tool is not allowed")
        match name:
            case "read_note" if args["key"] in self.texts:
                return self.texts[args["key"]]
            case "read_note":
                raise ValueError(f"there is no note {args['key']!r}")
            case "write_note":
                self.texts[str(args["key"])] = str(args["text"])
                return "written"
            case "slow_note":
                await asyncio.sleep(min(float(args["ms"]), 60_000) / 1000)
                return "done"
            case "fail_note":
                raise ValueError(args["message"])
        raise ValueError("there is no such tool")


def result(text: str, is_error: bool = False) -> dict:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
