"""A thread that takes items from a generator before they are asked for."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Generator
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that `ReadAhead.close` waits for a source that is busy. Its thread then ends by itself, or with the process."""


class Shelf(Generic[T]):
    """What the two threads share. It knows neither, so that a reader that is forgotten is collected, and its thread ends.

    Attributes
    ----------
    changed : threading.Condition
        Guards all else.
    items : deque
    n_free : int
        How many more items may be begun.
    closed : bool
        Nobody will take any more.
    over : bool
        Nothing more will be put.
    error : BaseException or None
        Why it is over, if not because the generator has ended.
    """

    def __init__(self, n_free: int) -> None:
        self.changed = threading.Condition()
        self.items: deque[T] = deque()
        self.n_free = n_free
        self.closed = self.over = False
        self.error: BaseException | None = None

    def fill(self, generator: Generator[T, None, None]) -> None:
        """Put what the generator gives, until it or the other side has had enough."""
        error: BaseException | None = None
        try:
            while self._wait_for_room():
                try:
                    item = next(generator)
                except StopIteration:
                    break
                with self.changed:
                    self.items.append(item)
                    self.changed.notify_all()
                del item
            generator.close()  # on this thread, which has opened its files
        except BaseException as raised:
            error = raised
        with self.changed:
            self.over, self.error = True, error
            self.changed.notify_all()

    def _wait_for_room(self) -> bool:
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.n_free > 0)
            self.n_free -= 1
            return not self.closed

    def take(self) -> T | None:
        """Return the next item, None after the last one; raise what the generator has raised."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.over or self.items)
            if self.items and not self.closed:
                self.n_free += 1
                self.changed.notify_all()
                return self.items.popleft()
            if self.error is not None and not self.closed:
                raise self.error
            return None


class ReadAhead(Generic[T]):
    """The items of a generator, at most ``n_ahead`` of them ready or begun before they are taken.

    The thread starts when the first item is asked for.
    """

    def __init__(self, generator: Generator[T, None, None], n_ahead: int) -> None:
        shelf: Shelf[T] = Shelf(n_ahead)
        self._shelf = shelf
        self._thread = threading.Thread(target=shelf.fill, args=(generator,), name="gpuboost-reader", daemon=True)
        # Also called as this is collected, and at the end of the process, before threads are stopped in the middle of a read.
        self._finalizer = weakref.finalize(self, _close, shelf, self._thread)

    def take(self) -> T | None:
        """Return the next item; None after the last one, or after `close`. Raise what the generator has raised."""
        if self._thread.ident is None and not self._shelf.closed:
            self._thread.start()
        return self._shelf.take()

    def close(self) -> None:
        """End the thread. May be called again."""
        self._finalizer()


def _close(shelf: Shelf[T], thread: threading.Thread) -> None:
    with shelf.changed:
        shelf.closed = True
        shelf.items.clear()
        shelf.changed.notify_all()
    if thread.ident is not None and thread is not threading.current_thread():  # the garbage collector may run on it
        thread.join(PATIENCE)
