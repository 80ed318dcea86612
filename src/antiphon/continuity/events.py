"""What a `ContinuousModel` tells its session, beside the events of a live model."""

from enum import StrEnum

from msgspec import Struct

from antiphon.continuity.energy import EnergyChange
from antiphon.models.base import ModelError


class Opened(Struct, frozen=True):
    """A model is connected: the first one, or another."""

    model: str


class ConnectFailed(Struct, frozen=True):
    """No model could be connected."""

    error: ModelError


class NoticeCode(StrEnum):
    RECONNECTING = "reconnecting"
    RECONNECTED = "reconnected"
    COULD_NOT_RESUME = "could_not_resume"
    MODEL_SWITCHED = "model_switched"
    ENERGY_EXHAUSTED = "energy_exhausted"
    LOCAL_MODEL = "local_model"
    NEW_UPSTREAM = "new_upstream"


class Noticed(Struct, frozen=True):
    """Something that the person should know about the models."""

    code: NoticeCode
    text: str


class Delayed(Struct, frozen=True):
    """The user waits for an answer while another model is being connected, and it takes long."""

    turn: str


ContinuityEvent = Opened | ConnectFailed | EnergyChange | Noticed | Delayed
