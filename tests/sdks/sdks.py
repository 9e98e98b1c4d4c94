"""The providers' own SDKs against the scripted model, which they find by their own environment variables, as
docs/model.md says. Run by tests/it/model_sdks.rs."""

import asyncio
import base64
import functools
import json
import unittest

import anthropic
import openai

PARAMETERS = {"type": "object", "properties": {"key": {"type": "string"}, "text": {"type": "string"}}}
TOOLS = ["write_note", "read_note"]


def cue(*steps):
    script = json.dumps({"v": 1, "turn": list(steps)}).encode()
    return f"Please do it. [[cue:{base64.urlsafe_b64encode(script).decode().rstrip('=')}]]"


def say(*chunks, **more):
    return {"say": list(chunks), **more}


def call(name, **args):
    return {"call": {"name": name, "args": args}}


def fail(status, message, **more):
    return {"fail": {"status": status, "message": message, **more}}


@functools.cache
def openai_client(**options):
    """A client; making one takes long, so that tests share them."""
    return openai.OpenAI(**options)


@functools.cache
def anthropic_client(**options):
    return anthropic.Anthropic(**options)


class Notes:
    """The tools: what was called is what a test looks at."""

    def __init__(self):
        self.notes = {}
        self.called = []

    def run(self, name, args):
        self.called.append((name, args))
        if name == "write_note":
            self.notes[args["key"]] = args["text"]
            return "written"
        return self.notes.get(args.get("key"), "no such note")


class Chat:
    """An agent's loop over Chat Completions."""

    errors = openai

    def __init__(self, **options):
        self.client = openai_client(**options)
        self.messages = []
        self.thoughts = ""

    def respond(self, stream):
        """One response: its chunks of text, its calls (id, name, arguments), its usage."""
        tools = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in TOOLS]
        request = {"model": "any-model", "messages": self.messages, "tools": tools}
        if not stream:
            completion = self.client.chat.completions.create(**request)
            message, chunks = completion.choices[0].message, []
            if message.content:
                chunks.append(message.content)
            self.thoughts += getattr(message, "reasoning_content", None) or ""
            self.messages.append(message.model_dump(exclude_none=True))
            calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or []]
            assert completion.choices[0].finish_reason == ("tool_calls" if calls else "stop")
            return chunks, calls, completion.usage
        chunks, calls, usage, reasons = [], {}, None, []
        options = {"stream": True, "stream_options": {"include_usage": True}}
        for chunk in self.client.chat.completions.create(**request, **options):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                reasons += [choice.finish_reason] if choice.finish_reason else []
                chunks += [choice.delta.content] if choice.delta.content else []
                self.thoughts += getattr(choice.delta, "reasoning_content", None) or ""
                for piece in choice.delta.tool_calls or []:
                    known = calls.setdefault(piece.index, {"id": piece.id, "name": piece.function.name, "args": ""})
                    known["args"] += piece.function.arguments or ""
        calls = [calls[index] for index in sorted(calls)]
        assert reasons == ["tool_calls" if calls else "stop"], reasons
        message = {"role": "assistant", "content": "".join(chunks) or None}
        if calls:
            message["tool_calls"] = [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["args"]}} for c in calls
            ]
        self.messages.append(message)
        return chunks, [(c["id"], c["name"], json.loads(c["args"])) for c in calls], usage

    def user(self, text):
        self.messages.append({"role": "user", "content": text})

    def results(self, results):
        for id, result in results:
            self.messages.append({"role": "tool", "tool_call_id": id, "content": result})

    def turn(self, text, stream, notes=None):
        """A whole turn: chunks of text by response, and the usage of the last."""
        self.user(text)
        said = []
        while True:
            chunks, calls, usage = self.respond(stream)
            said.append(chunks)
            if not calls:
                return said, usage
            self.results([(id, notes.run(name, args)) for id, name, args in calls])


class Responses(Chat):
    """The same over Responses; `remembered` leaves the history to the provider."""

    remembered = False

    def __init__(self, **options):
        super().__init__(**options)
        self.previous = None

    def respond(self, stream):
        tools = [{"type": "function", "name": name, "parameters": PARAMETERS, "strict": False} for name in TOOLS]
        request = {"model": "any-model", "input": self.messages, "tools": tools}
        if self.previous:
            request["previous_response_id"] = self.previous
        if stream:
            chunks = []
            with self.client.responses.stream(**request) as events:
                for event in events:
                    if event.type == "response.output_text.delta":
                        chunks.append(event.delta)
                response = events.get_final_response()
            assert "".join(chunks) == response.output_text
        else:
            response = self.client.responses.create(**request)
            chunks = [response.output_text] if response.output_text else []
        assert response.status == "completed"
        for item in response.output:
            if item.type == "reasoning":
                self.thoughts += "".join(part.text for part in item.summary)
        if self.remembered:
            self.previous, self.messages = response.id, []
        else:
            self.messages += [
                {k: v for k, v in item.model_dump(exclude_none=True).items() if k != "parsed_arguments"}
                for item in response.output
            ]
        calls = [item for item in response.output if item.type == "function_call"]
        return chunks, [(c.call_id, c.name, json.loads(c.arguments)) for c in calls], response.usage

    def results(self, results):
        for id, result in results:
            self.messages.append({"type": "function_call_output", "call_id": id, "output": result})


class Remembered(Responses):
    remembered = True


class Messages(Chat):
    """The same over Messages."""

    errors = anthropic

    def __init__(self, **options):
        self.client = anthropic_client(**options)
        self.messages = []
        self.thoughts = ""

    def respond(self, stream):
        tools = [{"name": name, "input_schema": PARAMETERS} for name in TOOLS]
        request = {"model": "any-model", "max_tokens": 1000, "messages": self.messages, "tools": tools}
        if stream:
            chunks = []
            with self.client.messages.stream(**request) as events:
                for event in events:
                    if event.type == "text":
                        chunks.append(event.text)
                message = events.get_final_message()
        else:
            message = self.client.messages.create(**request)
            chunks = [block.text for block in message.content if block.type == "text"]
        self.thoughts += "".join(block.thinking for block in message.content if block.type == "thinking")
        calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        assert message.stop_reason == ("tool_use" if calls else "end_turn")
        self.messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in message.content]})
        return chunks, calls, message.usage

    def results(self, results):
        content = [{"type": "tool_result", "tool_use_id": id, "content": result} for id, result in results]
        self.messages.append({"role": "user", "content": content})


class Cases:
    """What every API must do, streamed and not."""

    agent = None
    stream = False

    def test_a_text_turn(self):
        agent = self.agent()
        said, usage = agent.turn(cue({"think": ["h", "m"]}, say("Hel", "lo")), self.stream)
        self.assertEqual(said, [["Hel", "lo"]] if self.stream else [["Hello"]])
        self.assertEqual(agent.thoughts, "hm")
        out = getattr(usage, "output_tokens", None) or usage.completion_tokens
        self.assertEqual(out, 3)

    def test_plain_text(self):
        self.assertEqual(self.agent().turn("hello", self.stream)[0], [["ok"]])

    def test_a_tool_round_trip_and_another_turn(self):
        agent, notes = self.agent(), Notes()
        script = cue(say("writing"), call("write_note", key="k", text="größer"), call("read_note", key="k"), say("done"))
        said, _ = agent.turn(script, self.stream, notes)
        self.assertEqual(["".join(chunks) for chunks in said], ["writing", "done"])
        again = cue(call("read_note", key="k"), say("read"))
        self.assertEqual(agent.turn(again, self.stream, notes)[0], [[], ["read"]])
        self.assertEqual(notes.called, [
            ("write_note", {"key": "k", "text": "größer"}), ("read_note", {"key": "k"}), ("read_note", {"key": "k"}),
        ])

    def test_two_parallel_calls(self):
        agent = self.agent()
        agent.user(cue(call("write_note", key="a", text="1"), call("write_note", key="b", text="2"), say("both")))
        chunks, calls, _ = agent.respond(self.stream)
        self.assertEqual(chunks, [])
        self.assertEqual([(n, a["key"]) for _, n, a in calls], [("write_note", "a"), ("write_note", "b")])
        self.assertNotEqual(calls[0][0], calls[1][0])
        agent.results([(id, "written") for id, _, _ in calls])
        self.assertEqual(agent.respond(self.stream)[0], ["both"])

    def test_an_error_that_a_retry_gets_over(self):
        for status in (429, 500, 503):
            script = cue(fail(status, "for now", times=1, retry_after_ms=5), say("fine"))
            self.assertEqual(self.agent(max_retries=1).turn(script, self.stream)[0], [["fine"]])

    def test_an_error_that_stays(self):
        agent = self.agent(max_retries=1)
        with self.assertRaises(agent.errors.RateLimitError) as raised:
            agent.turn(cue(fail(429, "slow down", retry_after_ms=5)), self.stream)
        self.assertIn("slow down", str(raised.exception))
        self.assertEqual(raised.exception.response.headers["retry-after"], "1")
        self.assertEqual(raised.exception.response.request.headers["x-stainless-retry-count"], "1")
        for status, kind in [(401, "AuthenticationError"), (400, "BadRequestError"), (500, "InternalServerError")]:
            with self.assertRaises(getattr(agent.errors, kind)):
                self.agent(max_retries=0).turn(cue(fail(status, "no")), self.stream)

    def test_a_call_without_its_result_is_refused(self):
        agent = self.agent()
        agent.user(cue(call("read_note", key="k"), say("done")))
        agent.respond(self.stream)
        agent.user("never mind")
        if isinstance(agent, Remembered):
            return  # The call is not among the items.
        with self.assertRaises(agent.errors.BadRequestError):
            agent.respond(self.stream)

    def test_a_hang_ends_with_the_clients_patience(self):
        agent = self.agent(max_retries=0, timeout=0.3)
        with self.assertRaises(Exception) as raised:
            agent.turn(cue({"hang": True}), self.stream)
        self.assertIn("Timeout", type(raised.exception).__name__)


class Streamed(Cases):
    stream = True

    def test_a_failure_in_the_middle(self):
        agent = self.agent(max_retries=0)
        with self.assertRaises(Exception) as raised:
            agent.turn(cue(say("half"), fail(500, "it broke")), True)
        # The Responses SDK hands the failed response on; that is what the agent's own check meets.
        self.assertTrue("it broke" in str(raised.exception) or isinstance(agent, Responses), raised.exception)


def case(name, agent, base):
    return type(name, (base, unittest.TestCase), {"agent": agent})


ChatWhole = case("ChatWhole", Chat, Cases)
ChatStreamed = case("ChatStreamed", Chat, Streamed)
ResponsesWhole = case("ResponsesWhole", Responses, Cases)
ResponsesStreamed = case("ResponsesStreamed", Responses, Streamed)
RememberedWhole = case("RememberedWhole", Remembered, Cases)
RememberedStreamed = case("RememberedStreamed", Remembered, Streamed)
MessagesWhole = case("MessagesWhole", Messages, Cases)
MessagesStreamed = case("MessagesStreamed", Messages, Streamed)


class Others(unittest.TestCase):
    def test_events_have_the_types_that_the_sdks_know(self):
        script = cue({"think": ["t"]}, say("s"), call("read_note", key="k"))
        client = openai_client()
        for event in client.responses.create(model="m", input=script, stream=True):
            self.assertRegex(type(event).__name__, "^Response[A-Za-z]+Event$", event)
            self.assertEqual(type(event).model_validate(event.model_dump()).type, event.type)
        for chunk in client.chat.completions.create(model="m", messages=[{"role": "user", "content": script}], stream=True):
            type(chunk).model_validate(chunk.model_dump())
        messages = anthropic_client().messages
        request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": script}]}
        for event in messages.create(**request, stream=True):
            self.assertRegex(type(event).__name__, "^Raw[A-Za-z]+Event$", event)
            type(event).model_validate(event.model_dump())
        type(whole := messages.create(**request)).model_validate(whole.model_dump())

    def test_lists_and_counts(self):
        client = openai_client()
        self.assertEqual([model.id for model in client.models.list()], ["scripted"])
        self.assertEqual(client.models.retrieve("org/any").id, "org/any")
        one, two = client.embeddings.create(model="m", input=["a b", "b a"]).data
        self.assertEqual((len(one.embedding), one.embedding), (256, two.embedding))
        self.assertEqual(client.completions.create(model="m", prompt=cue(say("a", "b"))).choices[0].text, "ab")
        client = anthropic.Anthropic(auth_token="any", api_key=None)
        self.assertEqual([model.id for model in client.models.list()], ["scripted"])
        count = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "12345678"}])
        self.assertEqual(count.input_tokens, 3)

    def test_twenty_sessions_at_once(self):
        async def session(client, number):
            script = cue(say(f"I am {number}", every_ms=1), {"pause_ms": 20}, say("."))
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": script}], stream=True
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

        async def all_of_them():
            async with openai.AsyncOpenAI() as client:
                return await asyncio.gather(*(session(client, number) for number in range(20)))

        self.assertEqual(asyncio.run(all_of_them()), [f"I am {number}." for number in range(20)])


if __name__ == "__main__":
    unittest.main()
