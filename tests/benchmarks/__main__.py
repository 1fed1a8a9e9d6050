"""`make bench [BENCH=name]`: one JSON object a line; exit 1 if a target is missed."""

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterable

import tests.benchmarks
from tests.benchmarks.harness import Result

BENCHES = sorted(
    module.name
    for module in pkgutil.iter_modules(tests.benchmarks.__path__)
    if module.name not in ("__main__", "harness") and not module.ispkg
)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no bench {unknown[0]!r}: there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    ok = True
    for name in names or BENCHES:
        found = importlib.import_module(f"tests.benchmarks.{name}").bench()
        results: Iterable[Result] = [found] if isinstance(found, Result) else found
        for result in results:
            print(json.dumps(result.line()), flush=True)
            ok = ok and result.ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
