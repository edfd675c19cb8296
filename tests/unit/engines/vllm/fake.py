"""A server that speaks vLLM's token interface: weights are a folder's name, tokens count up, faults on request."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class FakeVllm:
    """Answers `generate` with ids 100, 101, ... and the name of its weights; `hold` keeps requests until a pause."""

    def __init__(self) -> None:
        self.weights, self.folder, self.adapter = "default", "start", ""
        self.release = "0.32.0+cpu"
        self.requests: list[dict[str, Any]] = []
        self.loads: list[str] = []
        self.hold = self.closed = False
        self.frozen = threading.Event()
        """Set: connections stay open and nothing is answered, as on a machine that lost its network."""
        self.broken: list[str] = []
        """Faults of the next requests: `drop` closes the connection, `stale` names other weights, or a log-prob."""
        self._paused = threading.Event()
        self._resumed = threading.Event()
        self._resumed.set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def generate(self, body: dict[str, Any]) -> dict[str, Any] | None:
        self._resumed.wait(10.0)
        self.requests.append(body)
        fault, finish = self.broken.pop(0) if self.broken else "", "length"
        if fault == "drop":
            return None
        count, named = body["sampling_params"]["max_tokens"], self.weights
        if self.hold:
            self._paused.wait(10.0)
            count, finish = min(2, count), "abort"
        first = len(body["token_ids"])
        ids = [100 + first + i for i in range(count)]
        logprob = float(fault) if fault.lstrip("-").replace(".", "").isdigit() else -0.5
        content = [{"token_id": i, "logprob": logprob} for i in ids]
        spans = [{"version": "other" if fault == "stale" else named, "start": 0, "end": count}]
        choice = {"token_ids": ids, "finish_reason": finish, "weight_versions": spans, "logprobs": {"content": content}}
        return {"choices": [choice]}

    def while_frozen(self) -> None:
        while self.frozen.is_set() and not self.closed:
            time.sleep(0.01)

    def control(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if path.startswith("/pause"):
            self._resumed.clear()
            self._paused.set()
        elif path == "/collective_rpc":
            self.folder = body["kwargs"]["weights_path"]
            self.loads.append(self.folder)
        elif path == "/v1/load_lora_adapter":
            self.adapter = body["lora_path"]
            self.loads.append(self.adapter)
        elif path == "/update_weight_version":
            self.weights = body["new_version"]
        elif path == "/resume":
            self._paused.clear()
            self._resumed.set()
        elif path == "/version":
            return {"version": self.release}
        elif path != "/health":
            return None
        return {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.while_frozen()
                if fake.closed:
                    return self._hang_up()
                return self._answer(fake.control(self.path, {}), 404)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                fake.while_frozen()
                if self.path != "/inference/v1/generate" and not fake.closed:
                    return self._answer(fake.control(self.path, body), 404)
                if not fake.closed and body.get("model") and not fake.adapter:
                    return self._answer({"error": f"The model `{body['model']}` does not exist."}, 200, 404)
                answer = None if fake.closed else fake.generate(body)
                return self._hang_up() if answer is None else self._answer(answer, 500)

            def _hang_up(self) -> None:
                self.close_connection = True
                self.connection.close()

            def _answer(self, answer: dict[str, Any] | None, otherwise: int, status: int = 200) -> None:
                data = json.dumps(answer or {}).encode()
                self.send_response(otherwise if answer is None else status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        return Handler

    def __enter__(self) -> "FakeVllm":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.closed = True  # connections that are kept alive end too
        self._http.shutdown()
        self._http.server_close()
