"""What can be wrong with model files, in one sentence for people."""

from antiphon.errors import AntiphonError


class WeightsError(AntiphonError):
    """A model file is missing or damaged, or cannot be pulled."""

    code = "weights"
