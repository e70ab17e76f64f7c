"""A scripted model: a server with TLS that speaks the streaming forms of Anthropic Messages, OpenAI Chat Completions and OpenAI
Responses, and does what its script says, a step a request. It keeps what it was asked, so that a test sees whether anything came twice.

    model = Model(lab)
    model.script([call("write_file", path="a", content="b"), text("done")])   # for the next requests, in order
    model.asked                                                              # the bodies, with the fields of their heads
A step may be a function of the request, or one of the faults below; what is asked beyond the script, `otherwise` answers.
"""
import http.server
import json
import ssl
import threading

import room  # noqa: F401
from harness import PATIENCE
from lab import certs
from lab.ports import free_port

TOKENS = {"input_tokens": 100, "output_tokens": 20}


def text(words, pieces=3):
    return {"text": words, "pieces": pieces}


def call(name, *more, **args):
    """A call, and more of them in the same answer."""
    return {"calls": [(name, args), *[c for other in more for c in other["calls"]]]}


def status(code, kind="overloaded_error", words="scripted", **fields):
    return {"status": code, "fields": fields, "error": {"type": kind, "message": words}}


CUT = {"cut": True}  # the stream ends in the middle
DROP = {"drop": True}  # the connection ends, and not a word was said


def stalls():
    """It begins, and goes on when the test says so, to no end."""
    return {"cut": True, "until": threading.Event()}


class Gate:
    """A step that begins, and goes on when the test says so."""

    def __init__(self, step):
        self.step, self.reached, self.go = step, threading.Event(), threading.Event()

    def __call__(self, asked):
        self.reached.set()
        assert self.go.wait(PATIENCE)
        return self.step


def anthropic(step):
    """The events of an answer."""
    yield {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
                                                "usage": {"input_tokens": TOKENS["input_tokens"], "output_tokens": 1}}}
    n = 0
    if step.get("text"):
        yield {"type": "content_block_start", "index": n, "content_block": {"type": "text", "text": ""}}
        size = max(1, len(step["text"]) // step["pieces"])
        for at in range(0, len(step["text"]), size):
            yield {"type": "content_block_delta", "index": n, "delta": {"type": "text_delta", "text": step["text"][at:at + size]}}
        yield {"type": "content_block_stop", "index": n}
        n += 1
    for i, (name, args) in enumerate(step.get("calls", ())):
        yield {"type": "content_block_start", "index": n, "content_block": {"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": {}}}
        said = args if isinstance(args, str) else json.dumps(args)
        for part in (said[:len(said) // 2], said[len(said) // 2:]):
            yield {"type": "content_block_delta", "index": n, "delta": {"type": "input_json_delta", "partial_json": part}}
        yield {"type": "content_block_stop", "index": n}
        n += 1
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if step.get("calls") else "end_turn"},
           "usage": {"output_tokens": TOKENS["output_tokens"]}}
    yield {"type": "message_stop"}


def chat(step):
    def chunk(delta, finish=None, **more):
        return {"id": "c1", "object": "chat.completion.chunk", "model": "scripted",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    yield chunk({"role": "assistant", "content": ""})
    if step.get("text"):
        yield chunk({"content": step["text"]})
    for i, (name, args) in enumerate(step.get("calls", ())):
        yield chunk({"tool_calls": [{"index": i, "id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": ""}}]})
        yield chunk({"tool_calls": [{"index": i, "function": {"arguments": json.dumps(args)}}]})
    yield chunk({}, "tool_calls" if step.get("calls") else "stop")
    yield {"id": "c1", "object": "chat.completion.chunk", "model": "scripted", "choices": [],
           "usage": {"prompt_tokens": TOKENS["input_tokens"], "completion_tokens": TOKENS["output_tokens"], "total_tokens": 120}}


def responses(step):
    """Named as Anthropic's, and numbered."""
    items = []
    response = {"id": "resp_1", "object": "response", "model": "scripted", "status": "in_progress", "output": []}
    events = [{"type": "response.created", "response": response}]

    def item(done, *between):
        at = {"output_index": len(items)}
        items.append(done)
        events.append({"type": "response.output_item.added", **at, "item": {**done, "status": "in_progress"}})
        events.extend({**e, **at, "item_id": done["id"]} for e in between)
        events.append({"type": "response.output_item.done", **at, "item": done})

    if step.get("text"):
        part = {"type": "output_text", "text": step["text"], "annotations": []}
        item({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]},
             {"type": "response.content_part.added", "content_index": 0, "part": {**part, "text": ""}},
             {"type": "response.output_text.delta", "content_index": 0, "delta": step["text"]},
             {"type": "response.output_text.done", "content_index": 0, "text": step["text"]},
             {"type": "response.content_part.done", "content_index": 0, "part": part})
    for i, (name, args) in enumerate(step.get("calls", ())):
        said = json.dumps(args)
        item({"type": "function_call", "id": f"fc_{i}", "call_id": f"call_{i}", "name": name, "arguments": said, "status": "completed"},
             {"type": "response.function_call_arguments.delta", "delta": said},
             {"type": "response.function_call_arguments.done", "arguments": said})
    usage = {"input_tokens": TOKENS["input_tokens"], "output_tokens": TOKENS["output_tokens"], "total_tokens": sum(TOKENS.values())}
    events.append({"type": "response.completed", "response": {**response, "status": "completed", "output": items, "usage": usage}})
    return [{**e, "sequence_number": n} for n, e in enumerate(events)]


class Model:
    name = "model.test"

    def __init__(self, lab):
        self.asked, self.steps, self.lock = [], [], threading.Lock()
        self.otherwise = text("nothing more is scripted")
        self.port, home = free_port(), lab.dir / f"model{lab.count}"
        lab.exempt(home)
        authority = certs.CA(home / "ca")
        cert, key = authority.leaf(self.name)
        self.ca = authority.cert
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                model.answer(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        lab.at_end.append(self.server.shutdown)

    def script(self, steps):
        with self.lock:
            self.steps = list(steps)

    def answer(self, request):
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self.lock:
            self.asked.append({"path": request.path, "body": body, "fields": {k.lower(): v for k, v in request.headers.items()}})
            step = self.steps.pop(0) if self.steps else self.otherwise
        if callable(step):
            step = step(self.asked[-1])
        if step.get("drop"):
            request.close_connection = True
            return
        if "status" in step:
            said = json.dumps({"type": "error", "error": step["error"]}).encode()
            request.send_response(step["status"])
            for name, value in step["fields"].items():
                request.send_header(name.replace("_", "-"), value)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(said)))
            request.end_headers()
            request.wfile.write(said)
            return
        openai = request.path.endswith("/chat/completions")
        form = chat if openai else responses if request.path.endswith("/responses") else anthropic
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.close_connection = True
        until = step.get("until")
        if step.get("cut"):
            step = text("this will be cut off, and never end " * 3, pieces=6)
            events = list(anthropic(step))[:4]
        else:
            events = form(step)

        def say(words):
            request.wfile.write(b"%x\r\n%s\r\n" % (len(words), words))
            request.wfile.flush()

        try:
            for event in events:
                head = "" if openai else f"event: {event['type']}\n"
                say(f"{head}data: {json.dumps(event)}\n\n".encode())
            if until:
                until.wait(PATIENCE)
            if openai:
                say(b"data: [DONE]\n\n")
            request.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass  # who asked was killed

    def results(self, n=-1):
        """What the tools said, as request n had it: (failed, text) each, in order."""
        found = []
        for message in self.asked[n]["body"]["messages"]:
            if isinstance(message["content"], list):
                for block in message["content"]:
                    if block["type"] == "tool_result":
                        content = block["content"]
                        words = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
                        found.append((bool(block.get("is_error")), words))
        return found
