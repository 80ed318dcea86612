"""sentences.yaml: how people ask for a tool without a model. `checking` reads and checks it, `grammar` matches it."""

from antiphon.tools.sentences.checking import check, cross_check, parse

__all__ = ["check", "cross_check", "parse"]
