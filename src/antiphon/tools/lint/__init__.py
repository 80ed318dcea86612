"""Checks of a tool's directory. All of them run, and all that they find is told."""

from antiphon.tools.lint.draft import Draft, check
from antiphon.tools.lint.problem import Problem, Severity

__all__ = ["Draft", "Problem", "Severity", "check"]
