"""Sentence templates (sentences.yaml): how people ask for a tool without a model.

`templates` reads them, `matching` finds the one that fits what was said. The build checks them in `authoring.lint`.
"""
