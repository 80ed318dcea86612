"""What can be wrong with sound."""

from antiphon.errors import AntiphonError


class AudioError(AntiphonError):
    """Sound that is not what it has to be: a broken file, a rate of nothing, a frame of the wrong length."""

    code = "bad_audio"
