"""A session: its event log, its clients, and its runs, one at a time."""

import asyncio
import json
import uuid
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timezone

import openai

from commands import Refused
from tools import GUARDED, TOOLS, Notes, result

VERSION = "1.0.0"
CAPABILITIES = ["approvals", "replay", "reasoning"]
# The replay window: the number of missed events that can be replayed.
WINDOW = 200
# The limit of rounds in a run, for a model that calls tools without end.
ROUNDS = 50
ITEMS = {"user_text", "assistant_text", "tool_call", "function_call_output", "reasoning"}


def now() -> str:
    return datetime.now(timezone.utc).isoformat()


@dataclass
class Run:
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "starting"
    started_at: str = field(default_factory=now)
    finished_at: str | None = None
    client_msg_ids: set[str] = field(default_factory=set)
    # Undecided calls, by call_id: the call, and who waits for the decision.
    pending: dict[str, tuple[dict, asyncio.Future]] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    outputs: int = 0
    task: asyncio.Task | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ("finished", "error")

    def state(self, last_event_id: int | None) -> dict:
        briefs = [
            {"call_id": call_id, "tool_key": call["name"], "args": call["args"]}
            for call_id, (call, _) in self.pending.items()
        ]
        return {
            "run_id": self.run_id,
            "status": self.status,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "pending_approvals": briefs,
            "last_event_id": last_event_id,
        }


class Session:
    def __init__(self, session_id: str, model: openai.AsyncOpenAI, bugs: frozenset[str]):
        self.id, self.model, self.bugs = session_id, model, bugs
        self.clients: list = []
        self.last_event_id: int | None = None
        self.window: deque[dict] = deque(maxlen=WINDOW)
        self.transcript: list[dict] = []
        self.messages: list[dict] = []
        self.notes = Notes()
        self.run: Run | None = None
        self.run_counter = 0

    # Messages to clients.

    def emit(self, kind: str, **fields) -> None:
        """Puts an event into the log and sends it to every client."""
        self.last_event_id = (self.last_event_id or 0) + 1
        event = {"type": kind, **fields, "event_id": self.last_event_id}
        self.window.append(event)
        if kind in ITEMS:
            self.transcript.append({"type": kind, **fields})
        for client in self.clients:
            client.put(event)

    def state(self) -> dict:
        active = self.run is not None and not self.run.is_over
        return {
            "session_id": self.id,
            "version": VERSION,
            "capabilities": CAPABILITIES,
            "last_event_id": self.last_event_id,
            "active_run_id": self.run.run_id if active else None,
            "run_counter": self.run_counter,
        }

    def snapshot(self, with_transcript: bool) -> dict:
        return {
            "type": "snapshot",
            "v": VERSION,
            "session_state": self.state(),
            "run_state": self.run.state(self.last_event_id) if self.run else None,
            "transcript": self.transcript if with_transcript else [],
            "event_id": self.last_event_id or 0,
        }

    def missed_since(self, last_seen: int) -> list[dict] | None:
        """The events after this one; None if they are not all stored."""
        newest = self.last_event_id or 0
        oldest = self.window[0]["event_id"] if self.window else newest + 1
        if last_seen > newest or last_seen < oldest - 1:
            return None
        return [event for event in self.window if event["event_id"] > last_seen]

    # Commands of clients.

    def active(self) -> Run:
        if self.run is None or self.run.is_over:
            raise Refused("NOT_RUNNING", "no run is active")
        return self.run

    def send(self, text: str, client_msg_id: str | None, accept) -> None:
        run = self.run
        if run is not None and not run.is_over:
            if client_msg_id is None or client_msg_id not in run.client_msg_ids:
                raise Refused("BUSY", "a run is active")
            accept()
            return
        accept()
        self.run = run = Run()
        if client_msg_id is not None:
            run.client_msg_ids.add(client_msg_id)
        self.run_counter += 1
        self.status("starting")
        self.emit("user_text", text=text)
        self.messages.append({"role": "user", "content": text})
        run.task = asyncio.create_task(self.perform(run))

    def decide(self, call_id: str, approved: bool, accept) -> None:
        run = self.run
        if run is None or call_id not in run.pending:
            if run is not None and call_id in run.decided:
                raise Refused("APPROVAL_CONFLICT", f"{call_id} is decided")
            raise Refused("UNKNOWN_CALL_ID", f"no decision about {call_id} is awaited")
        accept()
        _, decision = run.pending.pop(call_id)
        run.decided.add(call_id)
        self.emit("approval_decision", call_id=call_id, decision="approve" if approved else "deny_continue")
        decision.set_result(approved)

    def abort(self, run_id: str | None, accept) -> None:
        run = self.active()
        if run_id is not None and run_id != run.run_id:
            raise Refused("STALE_RUN_ID", "this run is not active")
        accept()
        if run.status != "aborting":
            run.pending.clear()
            self.status("aborting")
            # Behind the run's first step: a task that is cancelled before it has begun does not get to its `except`.
            asyncio.get_running_loop().call_soon(run.task.cancel)

    # A run.

    def status(self, status: str) -> None:
        self.run.status = status
        if self.run.is_over:
            self.run.pending.clear()
            self.run.finished_at = now()
        self.emit("run_status", run_state=self.run.state(self.last_event_id))

    async def perform(self, run: Run) -> None:
        conversation = len(self.messages)
        try:
            if run.status == "starting":
                self.status("running")
            for _ in range(ROUNDS):
                calls = await self.respond()
                if not calls:
                    break
                await self.use_tools(run, calls)
            if run.status == "running":
                self.status("finished")
            if not run.outputs:
                self.emit("turn_done", run_id=run.run_id)
        except asyncio.CancelledError:
            self.forget(conversation)
            self.status("finished")
        except openai.OpenAIError as error:
            self.forget(conversation)
            if "error-as-text" in self.bugs:
                self.emit("assistant_text", text=f"Sorry, something went wrong: {error}")
                self.status("finished")
                self.emit("turn_done", run_id=run.run_id)
                return
            self.status("error")
        except Exception:
            self.status("error")
            raise

    def forget(self, conversation: int) -> None:
        """Removes the messages of a failed run: providers refuse a call without its output."""
        del self.messages[conversation:]

    async def respond(self) -> list[dict]:
        """Streams one response of the model. Returns its calls."""
        said, calls = "", {}
        stream = await self.model.chat.completions.create(
            model="any", messages=self.messages, tools=TOOLS, stream=True
        )
        held = None
        async with stream:
            async for chunk in stream:
                if not chunk.choices:
                    continue
                delta = chunk.choices[0].delta
                if thought := getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None):
                    self.emit("reasoning", text=thought)
                if delta.content:
                    said += delta.content
                    if "late-answer" in self.bugs:
                        # Each piece is sent when the next one comes, so that the last one can wait for the end.
                        held, piece = delta.content, held
                        if piece is not None:
                            self.emit("assistant_text", text=piece)
                    else:
                        self.emit("assistant_text", text=delta.content)
                for part in delta.tool_calls or []:
                    call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] += part.id or ""
                    call["name"] += part.function.name or ""
                    call["arguments"] += part.function.arguments or ""
        if held is not None:
            if not calls:
                self.status("finished")
            self.emit("assistant_text", text=held)
        if not said and not calls:
            # A run always sends some text.
            self.emit("assistant_text", text="")
        return self.remember(said, list(calls.values()))

    def remember(self, said: str, calls: list[dict]) -> list[dict]:
        message = {"role": "assistant", "content": said or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in calls
            ]
        if said or calls:
            self.messages.append(message)
        found = []
        for call in calls:
            # Providers return the same id for the same request; in a session each id is unique.
            call_id = f"{call['id']}-{self.run_counter}"
            try:
                args = json.loads(call["arguments"] or "{}")
            except ValueError:
                args = {}
            found.append({"id": call["id"], "call_id": call_id, "name": call["name"], "args": args})
        return found

    async def use_tools(self, run: Run, calls: list[dict]) -> None:
        for call in calls:
            self.emit("tool_call", name=call["name"], args=call["args"], call_id=call["call_id"])
        decisions = {}
        for call in calls:
            if call["name"] in GUARDED:
                decisions[call["call_id"]] = asyncio.get_running_loop().create_future()
                run.pending[call["call_id"]] = (call, decisions[call["call_id"]])
                shown = json.dumps(call["args"], ensure_ascii=False)
                self.emit("approval_pending", call_id=call["call_id"], tool_key=call["name"], args_json=shown)
        if decisions:
            self.status("awaiting_approval")
            await asyncio.gather(*decisions.values())
            self.status("running")
        for call in calls:
            decision = decisions.get(call["call_id"])
            if decision is None or decision.result():
                output = await self.notes.run(call["name"], call["args"])
            else:
                output = result("the user denied this call", is_error=True)
            run.outputs += 1
            self.emit("function_call_output", call_id=call["call_id"], result=output)
            text = output["content"][0]["text"]
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
