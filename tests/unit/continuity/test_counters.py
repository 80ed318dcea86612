"""The counters of upstream connections."""

from antiphon.continuity.counters import ContinuityCounters, ReconnectOutcome
from antiphon.tools.spec import Mode


def test_reconnects_are_counted_by_outcome() -> None:
    counters = ContinuityCounters()

    counters.note_reconnect(ReconnectOutcome.RESUMED)
    counters.note_reconnect(ReconnectOutcome.FAILED)
    counters.note_reconnect(ReconnectOutcome.RESUMED)

    assert counters.reconnects == {ReconnectOutcome.RESUMED: 2, ReconnectOutcome.FAILED: 1}


def test_energy_changes_are_counted_by_mode_and_reason() -> None:
    counters = ContinuityCounters()

    counters.note_energy_change(Mode.VOICE, "manual")
    counters.note_energy_change(Mode.TEXT, "manual")
    counters.note_energy_change(Mode.VOICE, "manual")

    assert counters.energy_changes == {(Mode.VOICE, "manual"): 2, (Mode.TEXT, "manual"): 1}


def test_every_process_counts_from_zero() -> None:
    first = ContinuityCounters()
    first.note_go_away()
    first.note_fallback(Mode.VOICE)

    assert (ContinuityCounters().go_aways, ContinuityCounters().fallbacks) == (0, {})
