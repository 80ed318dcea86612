"""The composition root: the only package that names concrete classes. The server and the CLI share it."""

from antiphon.compose.app import TOOLKIT as TOOLKIT
from antiphon.compose.app import App as App
from antiphon.compose.app import build_tools as build_tools
from antiphon.compose.app import load_tools as load_tools
from antiphon.compose.app import open_app as open_app
from antiphon.compose.app import open_stores as open_stores
from antiphon.compose.ladders import TextModels as TextModels
from antiphon.compose.ladders import VoiceModels as VoiceModels
from antiphon.compose.ladders import open_text_models as open_text_models
from antiphon.compose.ladders import open_voice_models as open_voice_models
from antiphon.compose.reloading import watch_tools as watch_tools
from antiphon.compose.requirements import find_missing as find_missing
from antiphon.compose.services import Database as Database
from antiphon.compose.voice import Speech as Speech
from antiphon.compose.voice import Voice as Voice
from antiphon.compose.voice import chosen_voice as chosen_voice
from antiphon.compose.voice import open_speech as open_speech
from antiphon.compose.voice import open_voice as open_voice
