"""The commands of clients: the document's Pydantic models, and the error for each kind of invalid command."""

import json
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class Envelope(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    v: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    event_id: int | None = None
    ts: datetime | None = None
    req_id: str | None = None


class Hello(Envelope):
    type: Literal["hello"]
    v: str
    client_capabilities: list[str] = []


class Resume(Envelope):
    type: Literal["resume"]
    last_seen_event_id: int | None = None


class Send(Envelope):
    type: Literal["send"]
    text: str
    client_msg_id: str | None = None


class Approve(Envelope):
    type: Literal["approve"]
    call_id: str


class Deny(Envelope):
    type: Literal["deny"]
    call_id: str


class Abort(Envelope):
    type: Literal["abort"]


class GetSnapshot(Envelope):
    type: Literal["get_snapshot"]
    include_transcript_window: bool = False


class Ping(Envelope):
    type: Literal["ping"]
    nonce: str | None = None


Command = Annotated[
    Hello | Resume | Send | Approve | Deny | Abort | GetSnapshot | Ping,
    Field(discriminator="type"),
]
COMMAND = TypeAdapter(Command)

# Pydantic's names of errors, and those of the document.
CODES = {"missing": "MISSING_FIELD", "extra_forbidden": "INVALID_COMMAND"}
UNTYPED = {"union_tag_invalid", "union_tag_not_found", "model_attributes_type", "dict_type"}


class Refused(Exception):
    """A refused command."""

    def __init__(self, code: str, message: str, req_id: str | None = None):
        super().__init__(message)
        self.code, self.message, self.req_id = code, message, req_id


def parse(text: str | bytes) -> Command:
    """The command in a frame. Raises `Refused`."""
    if isinstance(text, bytes):
        raise Refused("INVALID_COMMAND", "commands are text frames")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("INVALID_COMMAND", f"not JSON: {error}") from None
    req_id = value.get("req_id") if isinstance(value, dict) else None
    req_id = req_id if isinstance(req_id, str) else None
    try:
        return COMMAND.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        kind, place = first["type"], ".".join(str(part) for part in first["loc"])
        code = "INVALID_COMMAND" if kind in UNTYPED else CODES.get(kind, "BAD_ARGUMENT")
        raise Refused(code, f"{place}: {first['msg']}" if place else first["msg"], req_id) from None
