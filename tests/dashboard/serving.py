"""A dashboard on a real socket for as long as a test needs it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from fastapi import FastAPI

from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.serving import server_of


def served(*runs: Path) -> AbstractContextManager[str]:
    """The address of a dashboard of these runs."""
    return on_socket(create_app(Catalogue.of(runs)))


@contextmanager
def on_socket(app: FastAPI) -> Iterator[str]:
    """The address of an application; nothing of it is left afterwards."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
