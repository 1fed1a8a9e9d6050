"""An end for a process in which a native call keeps Python's interpreter lock.

While TensorFlow's servers connect, no Python thread and no signal handler runs; if a peer dies just
then, the chief waits for ever. So the end comes from the C library, whose thread calls `_exit`
directly: when a POSIX timer expires, or when a read of a pipe (POSIX AIO) comes back.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CLOCK_MONOTONIC = 1
_SIGEV_THREAD = 2


class _SigEvent(ctypes.Structure):
    """struct sigevent of Linux, 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal_number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("padding", ctypes.c_char * 32),
    )


class _TimerSpec(ctypes.Structure):
    """struct itimerspec: repeat and first expiry, seconds and nanoseconds."""

    _fields_ = (
        ("repeat_seconds", ctypes.c_long),
        ("repeat_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class _AioControl(ctypes.Structure):
    """struct aiocb of glibc, and more room than its private part needs."""

    _fields_ = (
        ("file", ctypes.c_int),
        ("operation", ctypes.c_int),
        ("priority", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("event", _SigEvent),
        ("private", ctypes.c_char * 256),
    )


# What the C library reads and writes until the process ends.
_kept: list[object] = []


def exit_once_readable(file: int, code: int) -> None:
    """Ends this process with `code` as soon as a byte arrives in `file`, whatever it does then.

    Elsewhere than on Linux nothing happens: who writes the byte must kill the process as well.
    """
    if sys.platform != "linux":
        return
    buffer = ctypes.create_string_buffer(1)
    event = _event("_exit", code)
    control = _AioControl(file=file, buffer=ctypes.addressof(buffer), size=1, event=event)
    _kept.extend((buffer, control))
    if _library("aio_read").aio_read(ctypes.byref(control)):
        raise OSError(ctypes.get_errno(), "aio_read failed")


@contextmanager
def exit_unless_done(seconds: float, code: int, message: str) -> Iterator[None]:
    """Ends this process with `code` and one line on stderr, if the block takes longer.

    Elsewhere than on Linux the process is ended by SIGALRM, without a word.
    """
    if sys.platform != "linux":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        return
    # A timer's function gets one word: for warnx the text, for _exit the code.
    text = ctypes.c_char_p(message.replace("%", "%%").encode())
    timers = [
        _arm(seconds, "warnx", ctypes.cast(text, ctypes.c_void_p).value),
        _arm(seconds + 0.2, "_exit", code),
    ]
    try:
        yield
    finally:
        for timer in timers:
            _library("timer_delete").timer_delete(timer)


def _arm(seconds: float, function: str, value: int | None) -> ctypes.c_void_p:
    """Returns a timer that calls a function of the C library with `value` in `seconds`."""
    library, timer = _library("timer_create"), ctypes.c_void_p()
    event = _event(function, value)
    if library.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create failed")
    expiry = _TimerSpec(seconds=int(seconds), nanoseconds=max(1, int(seconds % 1 * 1e9)))
    library.timer_settime(timer, 0, ctypes.byref(expiry), None)
    return timer


def _event(function: str, value: int | None) -> _SigEvent:
    """Returns the wish that a thread of the C library calls its `function` with `value`."""
    call = ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p)
    return _SigEvent(value=value, notify=_SIGEV_THREAD, function=call.value)


def _library(function: str) -> ctypes.CDLL:
    """Returns where POSIX timers and AIO live: glibc's librt before 2.34, libc since."""
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, function) else ctypes.CDLL("librt.so.1", use_errno=True)
