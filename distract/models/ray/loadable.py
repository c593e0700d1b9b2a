"""What a worker needs of a backend."""

from __future__ import annotations

from typing import Protocol

from distract.core.backend import Backend


class LoadableBackend(Backend, Protocol):
    """A backend that can be sent to another process before it has loaded its model."""

    def load(self) -> None:
        """Load the model now instead of at the first request."""
