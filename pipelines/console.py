"""What a person sees of a local run: each step's name, its own lines as they come, its time.

kfp.local prints to stdout: log records, rules, the executor's JSON and the step's lines, indented.
`Console` stands in for stdout and lets through what the steps say. It knows kfp.local's words
(pinned by tests/pipelines/test_run.py); what it does not know it shows.
"""

from __future__ import annotations

import contextlib
import io
import re
import time
from typing import TextIO

_COLOUR = re.compile(r"\x1b\[\d+m")
_RECORD = re.compile(r"\d\d:\d\d:\d\d\.\d{3} - [A-Z]+ - (.*)")
_TASK = re.compile(r"Executing task '([^']+)'")
_ENDED = re.compile(r"Task '([^']+)' finished with status ([A-Z]+)")
_INDENT = "    "
_EXECUTOR = "[KFP Executor "
_IMAGE = ("Found image ", "Pulling image ", "Image pull complete")
# What to type next is told to who runs a step alone; the pipeline goes on by itself.
_NEXT = re.compile(r"; next: castell .*")
# What TensorFlow prints before its log level counts: no GPU here, and the like.
_TENSORFLOW = re.compile(r"WARNING: All log messages before absl::|[IWE]\d{4} \d\d:\d\d:\d+\.\d+")


class Console(io.TextIOBase):
    """A text stream that writes the readable part of kfp.local's output to `terminal`.

    Paths below `workdir` are shown from the step on: `train-model/run`. `verbose` shows all, as
    it comes.

    steps: the tasks begun, in order. error: the last step's last `castell: error:` line, or else
    its last line.
    """

    def __init__(self, terminal: TextIO, workdir: str, *, verbose: bool = False) -> None:
        self.steps: list[str] = []
        self.error = ""
        self._terminal = terminal
        self._verbose = verbose
        self._root = re.compile(re.escape(workdir.rstrip("/")) + r"/[^/\s]+/(?=[^/\s]+/)")
        self._part = ""
        self._began = time.monotonic()
        # Inside the executor's JSON, or inside kfp's listing of a task's outputs.
        self._skipping = ""

    def write(self, text: str) -> int:
        """Takes text as it comes and passes on whole lines."""
        *lines, self._part = (self._part + text).split("\n")
        for line in lines:
            self._line(line)
        return len(text)

    def flush(self) -> None:
        """Nothing waits here but an unfinished line."""
        self._terminal.flush()

    def _line(self, line: str) -> None:
        plain = self._root.sub("", _COLOUR.sub("", line))
        shown = self._shown(plain)
        if self._verbose:
            shown = line
        if shown is not None:
            # A run is worth more than its lines; the command's own next one tells.
            with contextlib.suppress(OSError):
                self._terminal.write(shown + "\n")
                self._terminal.flush()

    def _shown(self, line: str) -> str | None:
        if record := _RECORD.match(line):
            return self._record(record[1])
        if self._skipping == "outputs" and line:
            # Ends with the rule that kfp draws below a task.
            self._skipping = "outputs" if not line.startswith("---") else ""
            return None
        if line.startswith("---") and not line.strip("-"):
            return None
        return self._step_line(line.removeprefix(_INDENT)) if line.strip() else None

    def _step_line(self, line: str) -> str | None:
        if self._skipping == "json":
            self._skipping = "json" if line != "}" else ""
            return None
        if line.startswith(_EXECUTOR):
            self._skipping = "json" if line.endswith("Got executor_input:") else ""
            return None
        if _TENSORFLOW.match(line) or line.startswith(_IMAGE):
            return None
        line = _NEXT.sub("", line)
        if not self.error.startswith("castell: error:") or line.startswith("castell: error:"):
            self.error = line
        return _INDENT + line

    def _record(self, message: str) -> str | None:
        if task := _TASK.match(message):
            self.steps.append(task[1])
            self.error, self._began, self._skipping = "", time.monotonic(), ""
            return f"▸ {task[1]}"
        if ended := _ENDED.match(message):
            seconds = time.monotonic() - self._began
            outcome = "done" if ended[2] == "SUCCESS" else "failed"
            return f"{_INDENT}{outcome} after {seconds:.1f} s"
        self._skipping = "outputs" if message.endswith(" outputs:") else ""
        return None
