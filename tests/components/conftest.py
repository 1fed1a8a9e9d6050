"""Fixtures that the steps' tests share."""

from tests.components.models import models

__all__ = ["models"]
