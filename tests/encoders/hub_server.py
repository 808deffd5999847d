"""A small server that downloads from the Hugging Face hub can be tested with."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub(BaseHTTPRequestHandler):
    """As much of the Hugging Face hub as a download asks for, with one model."""

    def do_GET(self):
        path, commit = self.path.partition("?")[0], self.server.commit
        folder, model = self.server.folder, self.server.model
        name = path.partition(f"/resolve/{commit}/")[2]
        files = [file.relative_to(folder).as_posix() for file in folder.rglob("*.*")]
        if path == "/stop":
            self.answer({})
            threading.Thread(target=self.server.stop).start()
        elif path.startswith(f"/api/models/{model}/tree"):
            sizes = {file: (folder / file).stat().st_size for file in files}
            described = {"type": "file", "oid": "0" * 40}
            self.answer([{"path": file, "size": sizes[file], **described} for file in files])
        elif path.startswith(f"/api/models/{model}"):
            siblings = [{"rfilename": file} for file in files]
            self.answer({"id": model, "sha": commit, "siblings": siblings})
        elif path.startswith(f"/{model}/resolve") and name in files:
            content = (folder / name).read_bytes()
            etag = hashlib.sha1(content).hexdigest()
            self.answer(content, **{"ETag": f'"{etag}"', "X-Repo-Commit": commit})
        elif "gated" in path:
            self.answer({}, 403, **{"X-Error-Code": "GatedRepo"})
        else:
            self.answer({}, 404, **{"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def answer(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


class HubServer(ThreadingHTTPServer):
    """A hub with the files of a folder as one model, on a free port of this machine."""

    def __init__(self, folder, model="org/tiny", commit="0" * 39 + "1"):
        super().__init__(("127.0.0.1", 0), Hub)
        self.folder, self.model, self.commit = folder, model, commit
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()
