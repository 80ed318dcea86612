"""Recordings of calls: files in the data folder, whose sound servers on several machines share through the database."""

from antiphon.services.recordings.archive import RecordingArchive as RecordingArchive
from antiphon.services.recordings.service import RecordingService as RecordingService
from antiphon.services.recordings.service import open_archive as open_archive
from antiphon.services.recordings.service import open_recordings as open_recordings
from antiphon.services.recordings.sound_file import RecordingError as RecordingError
