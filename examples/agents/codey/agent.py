"""A small coding-assistant server that speaks codey-server's client protocol, with Anthropic's SDK behind it.

ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY say where the model is. A connection is a session; the notes are files, and so
shared. `--bugs NAME,NAME` puts mistakes in that servers really make:

no-goodbye        a close frame is never answered
other-call-id     an approval is asked for under an id that the request did not have
nested-state      State has its fields one level deeper, under `data`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import uuid
from datetime import datetime, timezone
from pathlib import Path

import anthropic
from aiohttp import WSMsgType, web

BUGS = ("no-goodbye", "other-call-id", "nested-state")
AGENT = 0
ATTEMPTS = 3
TRANSIENT = (anthropic.RateLimitError, anthropic.InternalServerError, anthropic.APIConnectionError)
FATAL = ("authentication_error", "permission_error")


def kind_of(error: anthropic.AnthropicError) -> str | None:
    """The provider's own name of an error. In the middle of a stream it has no HTTP status."""
    body = getattr(error, "body", None)
    described = body.get("error") if isinstance(body, dict) else None
    return described.get("type") if isinstance(described, dict) else None


class Rules:
    """Which calls run without approval, and which never run. The first rule that matches decides."""

    DENY = {"secret_note": ".*", "write_note": '"key": "forbidden"'}
    ALLOW = {"read_note": ".*", "slow_note": ".*", "fail_note": ".*"}

    @classmethod
    def verdict(cls, name: str, params: dict) -> str:
        text = json.dumps(params)
        for verdict, rules in (("deny", cls.DENY), ("allow", cls.ALLOW)):
            if name in rules and re.search(rules[name], text):
                return verdict
        return "ask"


class Toolbox:
    """The notes tools. A note is a file."""

    SCHEMAS = {
        "read_note": {"key": "string"},
        "write_note": {"key": "string", "text": "string"},
        "slow_note": {"ms": "integer"},
        "secret_note": {},
        "fail_note": {"message": "string"},
    }

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def described(cls) -> list[dict]:
        return [
            {
                "name": name,
                "description": name.replace("_", " "),
                "input_schema": {
                    "type": "object",
                    "properties": {key: {"type": kind} for key, kind in fields.items()},
                    "required": list(fields),
                },
            }
            for name, fields in cls.SCHEMAS.items()
        ]

    def path(self, key: object) -> Path:
        # No key leads out of the folder.
        name = "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):x}" for c in str(key))
        return self.folder / f"{name[:120]}.txt"

    async def use(self, name: str, params: dict, progress) -> str:
        """The tool's output. Raises `ToolFailed`."""
        use = getattr(self, name, None) if name in self.SCHEMAS else None
        if use is None:
            raise ToolFailed(f"there is no tool {name}")
        missing = [key for key in self.SCHEMAS[name] if key not in params]
        if missing:
            raise ToolFailed(f"{name} needs {', '.join(missing)}")
        return await use(params, progress)

    async def read_note(self, params, progress) -> str:
        try:
            return self.path(params["key"]).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ToolFailed("File not found") from None

    async def write_note(self, params, progress) -> str:
        self.path(params["key"]).write_text(str(params["text"]), encoding="utf-8")
        return "written"

    async def slow_note(self, params, progress) -> str:
        try:
            rest = min(float(params["ms"]), 60_000) / 1000
        except (TypeError, ValueError):
            raise ToolFailed("ms is no number") from None
        await progress("working")
        await asyncio.sleep(rest)
        return "working, done"

    async def fail_note(self, params, progress) -> str:
        raise ToolFailed(str(params["message"]))


class ToolFailed(Exception):
    pass


class Invalid(Exception):
    """An invalid message of the client."""


def demand(message: dict, key: str, kind: type) -> object:
    value = message.get(key)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Invalid(f"{message['type']} needs {key}, a {kind.__name__}")
    return value


class Agent:
    """One connection: its conversation, its active turn, and the decisions that it awaits."""

    def __init__(self, service: Service, socket: web.WebSocketResponse):
        self.service, self.socket = service, socket
        self.session_id = str(uuid.uuid4())
        self.conversation: list[dict] = []
        self.history: list[dict] = []
        self.awaited: dict[str, tuple[dict, asyncio.Future]] = {}
        self.open_calls: set[str] = set()
        self.turn: asyncio.Task | None = None
        self.is_dead = False
        self.usage = dict.fromkeys(
            ("output_tokens", "context_tokens", "cache_creation_tokens", "cache_read_tokens"), 0
        )

    async def tell(self, kind: str, **fields) -> None:
        try:
            await self.socket.send_str(json.dumps({"type": kind, **fields}, ensure_ascii=False))
        except ConnectionError:
            # The client has disconnected: the loop of the connection ends, and with it the turn.
            pass

    async def say(self, kind: str, **fields) -> None:
        """As `tell`, for messages of the agent."""
        await self.tell(kind, agent_id=AGENT, **fields)

    async def complain(self, text: str, fatal: bool = False) -> None:
        await self.tell("Error", message=text, fatal=fatal)

    # Messages of the client.

    async def hear(self, text: str) -> None:
        try:
            message = json.loads(text)
            # Half of a surrogate pair can be passed on to neither the model nor the client.
            json.dumps(message, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            return await self.complain(f"that cannot be read: {error}")
        kind = message.get("type") if isinstance(message, dict) else None
        handler = self.HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is None:
            return await self.complain(f"there is no message of type {kind!r}")
        try:
            await handler(self, message)
        except Invalid as error:
            await self.complain(str(error))

    async def send_message(self, message: dict) -> None:
        content = demand(message, "content", str)
        if message.get("agent_id") is not None and demand(message, "agent_id", int) != AGENT:
            raise Invalid("there is no such agent")
        if self.is_dead:
            return await self.complain("this session is over", fatal=True)
        if self.is_streaming:
            raise Invalid("the agent is at work: wait for Finished")
        self.remember("user", content)
        self.turn = asyncio.create_task(self.take_turn(content))

    async def tool_decision(self, message: dict) -> None:
        call_id, approved = demand(message, "call_id", str), demand(message, "approved", bool)
        _, decision = self.awaited.pop(call_id, (None, None))
        if decision is None:
            raise Invalid(f"no decision about {call_id} is awaited")
        decision.set_result(approved)

    async def cancel(self, message: dict) -> None:
        # The turn's first step is done then: a task that is cancelled before it has begun does not get to its `except`.
        await asyncio.sleep(0)
        if self.is_streaming:
            self.turn.cancel()
            await asyncio.wait([self.turn])

    async def get_history(self, message: dict) -> None:
        await self.tell("History", messages=self.history)

    async def get_state(self, message: dict) -> None:
        agents = [{"id": AGENT, "name": None, "is_streaming": self.is_streaming}]
        pending = [
            {"agent_id": AGENT, "call_id": call_id, "name": call["name"], "params": call["params"]}
            for call_id, (call, _) in self.awaited.items()
        ]
        fields = {"agents": agents, "pending_approvals": pending}
        await self.tell("State", **({"data": fields} if "nested-state" in self.service.bugs else fields))

    async def ping(self, message: dict) -> None:
        await self.tell("Pong")

    HANDLERS = {
        "SendMessage": send_message,
        "ToolDecision": tool_decision,
        "Cancel": cancel,
        "GetHistory": get_history,
        "GetState": get_state,
        "Ping": ping,
    }

    # A turn.

    @property
    def is_streaming(self) -> bool:
        return self.turn is not None and not self.turn.done()

    def remember(self, role: str, content: str) -> None:
        time = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.history.append({"role": role, "content": content, "timestamp": time})

    async def take_turn(self, content: str) -> None:
        before = len(self.conversation)
        self.conversation.append({"role": "user", "content": content})
        self.said: list[str] = []
        try:
            while calls := await self.ask_model():
                self.conversation.append({"role": "user", "content": await self.run_calls(calls)})
            self.close_turn()
            await self.finish()
        except asyncio.CancelledError:
            self.close_turn()
            del self.conversation[before:]
            for call_id in sorted(self.open_calls):
                await self.say("ToolError", call_id=call_id, error="cancelled")
            self.open_calls.clear()
            await self.finish()
        except anthropic.AnthropicError as error:
            self.close_turn()
            del self.conversation[before:]
            self.is_dead = kind_of(error) in FATAL
            await self.complain(str(error), fatal=self.is_dead)

    def close_turn(self) -> None:
        self.awaited.clear()
        if self.said:
            self.remember("assistant", "".join(self.said))

    async def finish(self) -> None:
        # A client that has got Finished finds the agent idle.
        self.turn = None
        await self.say("Finished", usage=self.usage)

    async def ask_model(self) -> list[dict]:
        """Streams one response, with retries if the provider is busy. Returns its calls."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self.stream_response()
            except TRANSIENT as error:
                if attempt == ATTEMPTS or self.has_spoken:
                    raise
                await self.say("Retrying", attempt=attempt, error=str(error))
                await asyncio.sleep(self.patience(error, attempt))
        raise AssertionError("unreachable")

    @staticmethod
    def patience(error: anthropic.AnthropicError, attempt: int) -> float:
        response = getattr(error, "response", None)
        wait = response.headers.get("retry-after-ms") if response is not None else None
        return min(float(wait) / 1000, 10) if wait and wait.isdigit() else 0.1 * attempt

    async def stream_response(self) -> list[dict]:
        self.has_spoken = False
        stream = self.service.model.messages.stream(
            model="any",
            max_tokens=8192,
            thinking={"type": "enabled", "budget_tokens": 2048},
            tools=Toolbox.described(),
            messages=self.conversation,
        )
        async with stream as events:
            async for event in events:
                if event.type == "message_start":
                    # Known from the beginning, so that a cancelled turn has a count, too.
                    self.grow(event.message.usage)
                if event.type != "content_block_delta":
                    continue
                self.has_spoken = True
                if event.delta.type == "text_delta":
                    self.said.append(event.delta.text)
                    await self.say("TextDelta", content=event.delta.text)
                elif event.delta.type == "thinking_delta":
                    await self.say("ThinkingDelta", content=event.delta.thinking)
            response = await events.get_final_message()
        self.count(response.usage)
        blocks = [block.model_dump(exclude_none=True) for block in response.content]
        if blocks:
            self.conversation.append({"role": "assistant", "content": blocks})
        # A provider returns the same ids for the same request; in a session each id is unique.
        turn = len(self.conversation)
        return [
            {"id": b["id"], "call_id": f"{b['id']}.{turn}", "name": b["name"], "params": b["input"]}
            for b in blocks
            if b["type"] == "tool_use"
        ]

    def count(self, usage: anthropic.types.Usage) -> None:
        self.grow(usage)
        self.usage["output_tokens"] += usage.output_tokens
        self.usage["cache_creation_tokens"] = usage.cache_creation_input_tokens or 0
        self.usage["cache_read_tokens"] = usage.cache_read_input_tokens or 0

    def grow(self, usage: anthropic.types.Usage) -> None:
        """The context only grows: nothing is compacted here."""
        context = usage.input_tokens + usage.output_tokens
        self.usage["context_tokens"] = max(self.usage["context_tokens"], context)

    # Tools.

    async def run_calls(self, calls: list[dict]) -> list[dict]:
        listed = [
            {"call_id": c["call_id"], "name": c["name"], "params": c["params"], "background": False}
            for c in calls
        ]
        self.open_calls = {c["call_id"] for c in calls}
        await self.say("ToolRequest", calls=listed)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run_call(call)) for call in calls]
        return [task.result() for task in tasks]

    async def run_call(self, call: dict) -> dict:
        try:
            output, is_error = await self.perform(call), False
        except ToolFailed as error:
            output, is_error = str(error), True
        # The end of a call is reported once: from here on, a cancellation does not report it.
        self.open_calls.discard(call["call_id"])
        if is_error:
            await self.say("ToolError", call_id=call["call_id"], error=output)
        else:
            await self.say("ToolCompleted", call_id=call["call_id"], content=output)
        return {"type": "tool_result", "tool_use_id": call["id"], "content": output, "is_error": is_error}

    async def perform(self, call: dict) -> str:
        verdict = Rules.verdict(call["name"], call["params"])
        if verdict == "deny":
            raise ToolFailed("a rule denies this call")
        if verdict == "ask" and not await self.is_approved(call):
            raise ToolFailed("the user denied this call")
        call_id = call["call_id"]
        await self.say("ToolStarted", call_id=call_id, name=call["name"])

        async def progress(text: str) -> None:
            await self.say("ToolDelta", call_id=call_id, content=text)

        return await self.service.toolbox.use(call["name"], call["params"], progress)

    async def is_approved(self, call: dict) -> bool:
        call_id = call["call_id"]
        if "other-call-id" in self.service.bugs:
            call_id = f"approval-{uuid.uuid4()}"
        decision = asyncio.get_running_loop().create_future()
        self.awaited[call_id] = (call, decision)
        fields = {"name": call["name"], "params": call["params"], "background": False}
        await self.say("ToolAwaitingApproval", call_id=call_id, **fields)
        return await decision


class Service:
    def __init__(self, notes: Path, bugs: frozenset[str]):
        self.toolbox = Toolbox(notes)
        self.bugs = bugs
        # The server retries itself, so that it can report retries to clients.
        self.model = anthropic.AsyncAnthropic(max_retries=0)

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        is_rude = "no-goodbye" in self.bugs
        socket = web.WebSocketResponse(autoclose=not is_rude, compress=False, max_msg_size=1 << 20)
        await socket.prepare(request)
        agent = Agent(self, socket)
        await agent.tell("Connected", session_id=agent.session_id)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await agent.hear(message.data)
                elif message.type is WSMsgType.BINARY:
                    await agent.complain("messages are text")
            if is_rude and socket.exception() is None:
                # The bug: something keeps the session open.
                await asyncio.sleep(3600)
        except ConnectionError:
            pass
        finally:
            if agent.is_streaming:
                agent.turn.cancel()
        return socket


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9999)
    parser.add_argument("--notes", type=Path, default=Path("notes"), help="the folder of the notes")
    parser.add_argument("--bugs", default="", metavar="NAME,NAME", help="deliberate mistakes; `all`: all of them")
    arguments = parser.parse_args()
    bugs = frozenset(BUGS if arguments.bugs == "all" else filter(None, arguments.bugs.split(",")))
    if unknown := bugs - set(BUGS):
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    arguments.notes.mkdir(parents=True, exist_ok=True)
    service = Service(arguments.notes, bugs)
    app = web.Application()
    app.router.add_get("/", service.connect)
    web.run_app(app, host="127.0.0.1", port=arguments.port, shutdown_timeout=0.1, access_log=None)


if __name__ == "__main__":
    main()
