"""Clients for `benchmarks.endpoint`: each resends its whole history over a unix socket, as a harness does.

Standard library only: `python -I -S endpoint_clients.py SOCKET`. One line of JSON on standard input is one round.
"""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection


class Unix(HTTPConnection):
    """A connection to a unix socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])


TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


def converse(key: str, messages: list[dict[str, object]], turns: int, result: str) -> None:
    """Take the turns of one conversation."""
    connection = Unix("endpoint")
    for turn in range(turns):
        body = json.dumps({"model": "policy", "messages": messages, "tools": [TOOL]})
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        found = json.load(answer)
        assert answer.status == 200, found
        if turn < turns - 1:
            messages += [found["choices"][0]["message"], {"role": "user", "content": result}]
    connection.close()


for line in sys.stdin:
    work = json.loads(line)
    with ThreadPoolExecutor(len(work["keys"])) as pool:
        list(
            pool.map(
                lambda key, opening, work=work: converse(key, opening, work["turns"], work["result"]),
                work["keys"],
                work["openings"],
            )
        )
    print("done", flush=True)
