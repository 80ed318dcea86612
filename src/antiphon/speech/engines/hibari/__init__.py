"""hibari: small voices, distilled from Kokoro's, that speak seventy times faster than real time on one core.

The package `hibari-tts` is under the Apache-2.0 licence, and so is the voice in it.
"""

from antiphon.speech.engines.hibari.synthesizer import HibariSynthesizer

__all__ = ["HibariSynthesizer"]
