"""Request bodies that the real clients send; `CASTELL_GOLDEN=write` writes them anew."""

import json
import os
from pathlib import Path
from typing import Any


def check(name: str, found: Any) -> None:
    file = Path(__file__).parent / f"{name}.json"
    if os.environ.get("CASTELL_GOLDEN") == "write":
        file.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    assert found == json.loads(file.read_text())
