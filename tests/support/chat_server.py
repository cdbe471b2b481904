"""A server with the OpenAI chat form, which answers as a test wants."""

import contextlib
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def said(text, finish="stop", **more):
    """An answer of the server, in the form that clients of other projects read, too."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    form = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return 200, {"content-type": "application/json"}, json.dumps({**form, **more}).encode()


class Server(ThreadingHTTPServer):
    """Answers with what `answer(body)` returns: status, headers, content; None to say nothing for a while; or a list.

    A list is sent as it is, byte for byte, one of its entries after the other.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.authorised, self.encodings, self.answer = [], [], set(), lambda body: said("call")
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.asked.append(body)
            server.authorised.append(self.headers.get("authorization"))
            server.encodings.add(self.headers.get("accept-encoding"))
            server.now += 1
            server.most = max(server.most, server.now)
        answer = server.answer(body)
        with server.lock:
            server.now -= 1
        if answer is None:
            time.sleep(2)
            return
        if isinstance(answer, list):
            with contextlib.suppress(OSError):  # the client has gone
                for part in answer:
                    self.wfile.write(part)
                    time.sleep(0.02)
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in headers:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        """Say nothing."""


def legal_moves(told):
    """The legal moves that a text lists last; none when the game is over."""
    found = re.findall("^Legal moves: (.*)$", told, re.MULTILINE)
    return found[-1].split(", ") if found else []


def lowest_words(told):
    """A reply with the first legal move that a prompt lists."""
    return f"Well.\nMove: {legal_moves(told)[0]}"


def lowest(body):
    """The first legal move of the first prompt."""
    return said(lowest_words(body["messages"][0]["content"]))


@contextlib.contextmanager
def serving(answer=lowest):
    """Run a server in a thread; it answers with the first legal move of each prompt unless told otherwise."""
    with Server() as made:
        made.answer = answer
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        made.shutdown()
