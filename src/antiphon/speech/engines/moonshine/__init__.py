"""Moonshine base: English speech to text on a CPU, with the official weights in our own ONNX graphs."""

from antiphon.speech.engines.moonshine.recognizer import MoonshineRecognizer

__all__ = ["MoonshineRecognizer"]
