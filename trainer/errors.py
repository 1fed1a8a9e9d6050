"""The errors that end a command, each with the exit code that tells a platform whether to retry.

A `UsageError` is a user's mistake: one line, no traceback. Anything that is not one of these
classes is a fault of ours or of a user's Task, and keeps its traceback.
"""

EXIT_DONE = 0
EXIT_FAULT = 1
EXIT_USAGE = 2
EXIT_DIVERGED = 3
# What a shell calls a program that Ctrl-C ended.
EXIT_INTERRUPTED = 130
# 128-255 are the retryable codes of TFJob's ExitCode policy; 138 is the one kept for users.
EXIT_PEER_LOST = 138
EXIT_STOPPED = 143


class CastellError(Exception):
    """An expected end: `str(error)` is the one line that the user reads."""

    exit_code = EXIT_FAULT

    def __str__(self) -> str:
        """The text in one line, whatever line breaks the names and values in it have."""
        return super().__str__().replace("\r", "\\r").replace("\n", "\\n")


class UsageError(CastellError):
    """Bad configuration or input; says the thing, the value and what to do. Not worth a retry."""

    exit_code = EXIT_USAGE


class Diverged(CastellError):
    """The loss stayed non-finite."""

    exit_code = EXIT_DIVERGED


class PeerLost(CastellError):
    """Another worker was lost, stalled or never came: restart all of them."""

    exit_code = EXIT_PEER_LOST


class Stopped(CastellError):
    """The platform asked to stop and the checkpoint is written."""

    exit_code = EXIT_STOPPED


def suggestion(unknown: str, known: list[str]) -> str:
    """Returns ", did you mean 'x'?" for the nearest known name, or an empty string."""
    import difflib

    near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""
