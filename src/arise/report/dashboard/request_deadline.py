"""Close connections that do not send a whole request in time."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVING = (h11.IDLE, h11.SEND_BODY)
"""States of a connection in which its request is incomplete."""


class RequestDeadline(H11Protocol):
    """Uvicorn's protocol with a deadline for each request, even if its bytes arrive slowly.

    Uvicorn itself only limits how long a connection may be idle between two requests.
    """

    seconds = 10.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Process received data, and cancel the deadline once the request is complete."""
        self._expect()
        super().data_received(data)
        if self.conn.their_state not in ARRIVING:
            self._expect_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._expect_no_longer()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self._give_up)

    def _expect_no_longer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self.transport.abort()
