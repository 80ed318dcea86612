"""The toolkit as the command line shows it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.real_time

VT: Final = frozenset({"voice", "text"})
V: Final = frozenset({"voice"})
T: Final = frozenset({"text"})

TOOLKIT: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("get_current_time", "get_current_date", "calculate_date", "get_day_of_week"), VT),
    **dict.fromkeys(("time_until", "format_datetime", "calculate", "convert_units"), VT),
    **dict.fromkeys(("get_weather", "get_forecast", "web_search", "quick_answer"), VT),
    **dict.fromkeys(("open_url", "show_code", "tell_joke", "flip_coin", "roll_dice", "pick_one"), VT),
    **dict.fromkeys(("get_system_info", "get_resource_usage", "get_disk_space", "get_uptime"), VT),
    **dict.fromkeys(("set_reminder", "list_reminders", "cancel_reminder"), VT),
    **dict.fromkeys(("set_timer", "set_alarm", "snooze_reminder"), VT),
    **dict.fromkeys(("list_add", "list_show", "list_remove"), VT),
    **dict.fromkeys(("kb_search", "kb_get", "linkedin_lookup", "rank_results"), VT),
    **dict.fromkeys(("ha_state", "ha_control", "calendar_list_events"), VT),
    **dict.fromkeys(("ignore_user", "describe_tool"), VT),
    **dict.fromkeys(("calendar_get_availability", "calendar_create_event", "calendar_delete_event"), T),
    **dict.fromkeys(("image_draft_prompt", "image_generate", "extract_contacts", "start_voice_session"), T),
    "end_voice_session": V,
}
"""The tools that ship, and the modes in which each can be used."""


def test_every_tool_of_the_toolkit_is_listed_with_its_modes(tmp_path: Path) -> None:
    shown = Terminal(tmp_path).run_process("tools", "list", "--json")
    assert shown.code == 0, shown.err
    listed = {tool["toolId"]: frozenset(tool["allowedModes"]) for tool in shown.json["tools"]}
    assert {name: listed.get(name) for name in TOOLKIT} == TOOLKIT


def test_the_table_for_people_has_a_row_for_every_tool(tmp_path: Path) -> None:
    table = Terminal(tmp_path).run("tools", "list").out
    rows = {line.split()[0] for line in table.splitlines() if line.strip()}
    assert TOOLKIT.keys() <= rows
