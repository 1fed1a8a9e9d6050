"""A configuration file as it is written: YAML (so JSON too), with keys that are text.

YAML 1.1 takes a key `no` for false and lets the last of two equal keys win; here a key is what
stands there, and one that stands twice is an error.
"""

from __future__ import annotations

from typing import Any, TextIO

import yaml

from trainer.errors import UsageError

_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


def parse(text: str | TextIO, name: str) -> Any:
    """Returns what the text describes; `name` is what an error calls it.

    An error quotes the line of a text, but none of a stream: it may hold secrets.

    Raises:
      UsageError: it is no YAML, or a mapping in it has a key twice.
    """
    try:
        return yaml.load(text, _Loader)
    except _Twice as error:
        raise UsageError(f"{name}: {error}") from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply: write it flat") from None
    except (yaml.YAMLError, ValueError) as error:
        line = " ".join(str(error).split())
        raise UsageError(f"{name} is not YAML: {line}") from None


class _Twice(Exception):
    """A key that stands twice."""


class _Loader(yaml.SafeLoader):
    # Looked at while it is read: later, merged mappings (<<) have their keys in here as well.
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in seen:
                line = key.start_mark.line + 1
                raise _Twice(
                    f"{key.value!r} stands there twice, the second time in line {line}: keep one"
                )
            seen.add(key.value)
            key.tag = _TEXT
        return node
