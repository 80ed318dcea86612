"""Moonshine base: English speech to text on a CPU, by graphs of our own with the official weights."""

from antiphon.speech.engines.moonshine.recognizer import MoonshineRecognizer

__all__ = ["MoonshineRecognizer"]
