"""Kokoro-82M, quantized to 8 bits: 28 English voices for who has the CPU.

A second of speech takes half a second of one core, and an utterance is synthesised as a whole: that is too slow for
conversations on most machines.
"""

from antiphon.speech.engines.kokoro.synthesizer import KokoroSynthesizer

__all__ = ["KokoroSynthesizer"]
