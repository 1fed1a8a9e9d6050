"""What the tests of both platforms call."""

from pipelines.cli import main

PARAMETERS = ("sources=gs://bucket/flights.csv", "label=late", "epochs=2", "config={momentum: 0.1}")


def castell(command: str, *more: str) -> int:
    return main([command, *more])


def submit(target: str, *more: str, params: tuple[str, ...] = PARAMETERS) -> int:
    flags = [word for param in params for word in ("--param", param)]
    return castell("submit", "train_evaluate_export", "--target", target, *flags, *more)
