"""A small server that speaks OpenAI's protocol, and misbehaves where a test asks it to."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Completions(BaseHTTPRequestHandler):
    """Answers questions with the words of `server.answer`, after the faults that are still due."""

    def do_POST(self):
        server = self.server
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append(request)
            server.keys.append(self.headers.get("Authorization"))
            fault = server.faults.pop(0) if server.faults else None
        if fault == "slow":
            time.sleep(server.delay)
        elif fault == "cut off":
            self.respond(200, b'{"choices": [', length=1000)
            return
        elif fault == "not json":
            self.respond(200, b"<html>busy</html>")
            return
        elif fault == "too long":
            self.complete('{"label": "spo', "length")
            return
        elif fault == "retry after":
            self.respond(429, b"{}", **{"Retry-After": "0.2"})
            return
        elif isinstance(fault, int):
            self.respond(fault, json.dumps({"error": {"message": server.message}}).encode())
            return
        if "response_format" in request and not server.structured:
            self.respond(400, b'{"error": {"message": "response_format is not known"}}')
            return
        self.complete(server.answer(request["messages"][0]["content"]))

    def complete(self, answer, reason="stop"):
        message = {"role": "assistant", "content": answer}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny"}
        self.respond(200, json.dumps(about | {"choices": [choice]}).encode())

    def respond(self, status, body, length=None, **headers):
        self.send_response(status)
        about = {"Content-Type": "application/json", "Content-Length": str(length or len(body))}
        for name, value in (about | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length is not None

    def log_message(self, *args):
        pass


class LanguageServer(ThreadingHTTPServer):
    """A language model on a free port of this machine."""

    daemon_threads = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Completions)
        self.answer, self.structured, self.delay = answer, True, 0.5
        self.faults, self.requests, self.keys, self.lock = [], [], [], threading.Lock()
        self.message = "something is wrong"
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def handle_error(self, request, client_address):
        """A client that no longer waits is no error."""

    def stop(self):
        self.shutdown()
        self._thread.join()
        self.server_close()
