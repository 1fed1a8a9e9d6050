"""What happens on the outputs of an interval, and is not the step: each action is a file here.

An action is any callable that takes a `Report`; a user's own is named by `--actions
pkg.module:function`. Actions run on the chief alone, after the figures are written, and so must
never call a collective.
"""

from trainer.actions.report import Action, Report

__all__ = ["Action", "Report"]
