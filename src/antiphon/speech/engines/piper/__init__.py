"""Piper: a neural voice on a CPU, cut in three so that its first sound does not wait for its last.

`piper-tts` is under the GPL-3. It is imported in this package only, and installed only with the extra "local".
"""

from antiphon.speech.engines.piper.synthesizer import PiperSynthesizer

__all__ = ["PiperSynthesizer"]
