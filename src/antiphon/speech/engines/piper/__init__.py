"""Piper: neural speech synthesis on a CPU. The model is split in three, so that playback starts before it has finished.

`piper-tts` is under the GPL-3. It is imported in this package only, and installed only with the extra "piper".
"""

from antiphon.speech.engines.piper.synthesizer import PiperSynthesizer

__all__ = ["PiperSynthesizer"]
