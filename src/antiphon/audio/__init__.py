"""Audio processing: samples, files, resampling, and the models for voice activity and end of turn."""

from antiphon.errors import AntiphonError


class AudioError(AntiphonError):
    """Audio that cannot be used: a broken file, a rate of 0, a frame of the wrong length."""

    code = "bad_audio"
