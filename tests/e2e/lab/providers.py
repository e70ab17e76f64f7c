#!/usr/bin/env python3
"""Small servers in the shape of GitHub's API (as an enterprise has it, below /api/v3), Anthropic's and OpenAI's, that take nothing
without the one key of theirs, and tell whoever brings it what they got: in a field of the head and in the answer.

usage: providers.py --dir DIR --name HOST...
DIR/keys.json has the keys: {"github": ..., "anthropic": ..., "openai": ...}. Says {"port": N, "ca": PATH} when it is ready;
DIR/requests.jsonl has a line for each request: method, path, whether the key was right, the body.
"""
import argparse
import http.server
import json
import pathlib
import ssl
import threading

import certs

PIECES = ["The lease ", "is not ", "the key."]


PULL = {"number": 12, "id": "PR_12", "title": "Mend the roof", "state": "OPEN", "url": "https://github.test/acme/app/pull/12", "headRefName": "roof",
        "baseRefName": "main", "isCrossRepository": False, "isDraft": False, "createdAt": "2026-11-01T00:00:00Z",
        "headRepositoryOwner": {"id": "U_1", "login": "acme"}}
REPOSITORY = {"id": "R_1", "name": "app", "owner": {"id": "U_1", "login": "acme"}, "hasIssuesEnabled": True, "description": "", "isPrivate": False,
              "viewerPermission": "WRITE", "defaultBranchRef": {"name": "main"}, "parent": None, "mergeCommitAllowed": True, "rebaseMergeAllowed": True,
              "squashMergeAllowed": True}


def graphql(document):
    """What gh asks: whether the server knows a field, whose the repository is, pull requests, and to make one."""
    if "createPullRequest" in document:
        return {"createPullRequest": {"pullRequest": {"id": "PR_13", "url": "https://github.test/acme/app/pull/13"}}}
    if "__type" in document:
        return {kind: {"fields": [{"name": name} for name in ("stateReason", "isDraft")], "enumValues": []} for kind in
                ("PullRequest", "StatusCheckRollupContextConnection", "Issue", "Repository")}
    if "pullRequests(" in document:
        mine = [] if "headRefName: $headRefName" in document else [PULL]
        return {"repository": {"pullRequests": {"totalCount": len(mine), "nodes": mine, "pageInfo": {"hasNextPage": False, "endCursor": ""}},
                               "defaultBranchRef": {"name": "main"}}}
    return {"viewer": {"login": "octocat"}, "repository": REPOSITORY, "repo_000": REPOSITORY}


def github(ask):
    if ask.method == "POST" and ask.path == "/api/graphql":
        return 200, {"data": graphql(ask.body["query"])}
    if ask.method == "POST" and ask.path == "/api/v3/repos/acme/app/issues":
        return 201, {"number": 7, "title": ask.body["title"], "seen": ask.brought}
    if ask.method == "GET" and ask.path == "/api/v3/user":
        return 200, {"login": "octocat", "id": 1, "seen": ask.brought}
    return 404, {"message": "Not Found"}


def anthropic(ask):
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": ask.body["model"], "stop_reason": None,
             "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}, "seen": ask.brought}
    if ask.path != "/v1/messages":
        return 404, {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}}
    if not ask.body.get("stream"):
        return 200, {**about, "content": [{"type": "text", "text": "".join(PIECES)}], "stop_reason": "end_turn"}
    events = [("message_start", {"message": {**about, "content": []}}),
              ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})]
    events += [("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}, "seen": ask.brought})
               for piece in PIECES]
    events += [("content_block_stop", {"index": 0}),
               ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}}),
               ("message_stop", {})]
    return 200, [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events]


def openai(ask):
    if ask.path != "/v1/chat/completions":
        return 404, {"error": {"message": "Not Found", "type": "invalid_request_error"}}
    about = {"id": "chatcmpl-1", "created": 1, "model": ask.body["model"], "seen": ask.brought}
    if not ask.body.get("stream"):
        return 200, {**about, "object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "".join(PIECES)}, "finish_reason": "stop"}]}
    parts = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in PIECES]
    parts.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return 200, [f"data: {json.dumps({**about, 'object': 'chat.completion.chunk', 'choices': [part]})}\n\n" for part in parts] + [
        "data: [DONE]\n\n"]


# host's first label: who answers, the field that brings the key, its scheme
PROVIDERS = {"github": (github, "Authorization", "token "), "anthropic": (anthropic, "X-Api-Key", ""),
             "openai": (openai, "Authorization", "Bearer ")}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        name = self.headers.get("Host", "").partition(".")[0]
        provider, field, scheme = PROVIDERS[name]
        self.method, self.brought = self.command, self.headers.get(field, "")
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.body = json.loads(text) if text else {}
        right = self.headers.get_all(field) == [scheme + self.server.keys[name]]
        self.server.note({"host": name, "method": self.command, "path": self.path, "right": right, "body": self.body})
        if right:
            status, said = provider(self)
        else:
            status, said = 401, {"message": "Bad credentials", "error": {"type": "authentication_error", "message": "Bad credentials"}}
        self.send_response(status)
        self.send_header("X-Seen", self.brought)
        if isinstance(said, list):
            self.events(said)
            return
        data = json.dumps(said).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

    def events(self, events):
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event.encode()))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, directory):
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys = json.loads((directory / "keys.json").read_text())
        self.lock, self.log = threading.Lock(), open(directory / "requests.jsonl", "a", encoding="utf-8")

    def note(self, row):
        with self.lock:
            self.log.write(json.dumps(row) + "\n")
            self.log.flush()


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--dir", type=pathlib.Path, required=True)
    parse.add_argument("--name", action="append", required=True)
    options = parse.parse_args()
    ca = certs.CA(options.dir / "ca")
    cert, key = ca.leaf(options.name[0], sans=[f"DNS:{name}" for name in options.name])
    server = Server(options.dir)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("ready", json.dumps({"port": server.server_address[1], "ca": str(ca.cert)}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
