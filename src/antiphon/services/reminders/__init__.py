"""Reminders, timers and alarms: what tools do with them, and the scheduler that rings them."""

from antiphon.services.reminders.scheduler import Listener, Scheduler
from antiphon.services.reminders.service import ReminderService

__all__ = ["Listener", "ReminderService", "Scheduler"]
