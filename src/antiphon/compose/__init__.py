"""The composition root: the one place that names concrete classes. The server and the CLI share it."""

from antiphon.compose.house import TOOLKIT as TOOLKIT
from antiphon.compose.house import Database as Database
from antiphon.compose.house import House as House
from antiphon.compose.house import build_tools as build_tools
from antiphon.compose.house import load_tools as load_tools
from antiphon.compose.house import open_house as open_house
from antiphon.compose.house import open_stores as open_stores
from antiphon.compose.reloading import watch_tools as watch_tools
from antiphon.compose.voice import Speech as Speech
from antiphon.compose.voice import Voice as Voice
from antiphon.compose.voice import open_speech as open_speech
from antiphon.compose.voice import open_voice as open_voice
