"""`antiphon kb …`, on files as people have them."""

import json
from pathlib import Path

import pytest

from tests.e2e.terminal import Shown, Terminal

pytestmark = pytest.mark.real_time

VACATION = """---
title: Vacation policy
tags: [HR, policy]
date: 2026-01-10
approved by: Ada
---
Every employee has 28 days of paid vacation a year.
"""
PEOPLE = (
    'title,type,url,tags,body\nAda Byron,person,https://www.linkedin.com/in/ada,"math; history",Ada wrote a program.\n'
)
PROJECTS = [{"title": "Heron", "type": "project", "body": "The budget is 180,000 euros.", "metadata": {"year": 2026}}]


class KbTerminal(Terminal):
    def kb(self, *words: str, **variables: str) -> Shown:
        return self.run("kb", *words, ANTIPHON_KNOWLEDGE__EMBEDDINGS="false", **variables)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def terminal(tmp_path: Path) -> KbTerminal:
    terminal = KbTerminal(tmp_path)
    terminal.write("files/vacation.md", VACATION)
    terminal.write("files/office/coffee.md", "# The coffee machine\n\nDescale it every month.\n")
    terminal.write("files/wifi.txt", "The password is on the whiteboard.\n")
    terminal.write("files/people.csv", PEOPLE)
    terminal.write("files/projects.jsonl", "\n".join(map(json.dumps, PROJECTS)))
    terminal.write("files/.hidden.md", "Not for you.")
    terminal.write("files/photo.png", "not text")
    return terminal


IDS = ["doc:office_coffee", "doc:vacation", "doc:wifi", "person:ada_byron", "project:heron"]


def ids(terminal: KbTerminal, *words: str) -> list[str]:
    return sorted(record["id"] for record in terminal.kb("list", "--json", *words).json["records"])


def test_a_folder_is_added_with_all_kinds_of_files_in_a_separate_process(terminal: KbTerminal) -> None:
    shown = terminal.run_process("kb", "add", "files", "--tag", "Imported", ANTIPHON_KNOWLEDGE__EMBEDDINGS="false")
    assert (shown.code, shown.out) == (0, "Added 5 records, updated 0. Skipped 1 files of other kinds.\n")
    assert "knowledge.embeddings is off" in shown.err
    assert ids(terminal) == IDS
    assert ids(terminal, "--tag", "imported", "--type", "person") == ["person:ada_byron"]


def test_a_record_keeps_what_its_file_says(terminal: KbTerminal) -> None:
    terminal.kb("add", "files")
    record = terminal.kb("show", "doc:vacation", "--json").json
    assert record["title"] == "Vacation policy"
    assert record["tags"] == ["hr", "policy"]
    assert record["last_updated"] == "2026-01-10T00:00:00Z"
    assert record["metadata"] == {"approved by": "Ada"}
    assert record["body"] == "Every employee has 28 days of paid vacation a year."
    assert terminal.kb("show", "project:heron", "--json").json["metadata"] == {"year": 2026}


def test_adding_the_same_files_again_updates_their_records(terminal: KbTerminal) -> None:
    terminal.kb("add", "files")
    terminal.write("files/vacation.md", VACATION.replace("28", "30"))
    assert terminal.kb("add", "files").out.startswith("Added 0 records, updated 5.")
    assert terminal.kb("add", "files/office/coffee.md").out.startswith("Added 0 records, updated 1.")
    assert ids(terminal) == IDS
    assert "30 days" in terminal.kb("show", "doc:vacation").out


def test_files_with_the_same_name_in_two_folders_are_two_records(terminal: KbTerminal) -> None:
    terminal.write("other/wifi.txt", "Another network.")
    terminal.kb("add", "files/wifi.txt")
    terminal.kb("add", "other/wifi.txt")
    assert ids(terminal) == ["doc:wifi", "doc:wifi_2"]


def test_every_mistake_is_reported_with_its_line_and_nothing_is_added(terminal: KbTerminal) -> None:
    bad = ['{"title": "x"', "[1]", '{"body": "q"}', '{"title": "a", "body": "b", "type": "zzz"}', '{"title": "e"}']
    terminal.write("bad.jsonl", "\n".join(bad))
    terminal.write("bad.csv", "title,body\na,b\nc\n")
    terminal.write("bad.md", "---\ntitle: [\n---\nx")
    (terminal.folder / "latin.txt").write_bytes(b"caf\xe9")
    shown = terminal.kb("add", "files", "bad.jsonl", "bad.csv", "bad.md", "latin.txt", "gone.md", "files/photo.png")
    assert shown.code == 1
    assert shown.err.startswith("antiphon: nothing was added, because of 10 mistakes:")
    for part in (
        "bad.jsonl:1: it is not JSON",
        "bad.jsonl:2: it must be an object",
        "bad.jsonl:3: it has no title",
        "bad.jsonl:4: 'zzz' is not a type. It must be one of project, person, process, link, doc.",
        "bad.jsonl:5: the record 'doc:e' has no text and no link",
        "bad.csv:3: it does not have 2 columns",
        "bad.md: its front matter is not YAML",
        "latin.txt: it is not UTF-8 text",
        "gone.md: there is no such file or folder",
        "photo.png: files of this kind cannot be read",
    ):
        assert part in shown.err, part
    assert ids(terminal) == []


def test_two_records_with_the_same_given_id_are_a_mistake(terminal: KbTerminal) -> None:
    row = json.dumps({"id": "doc:a", "title": "A", "body": "b"})
    terminal.write("twice.jsonl", f"{row}\n{row}\n")
    shown = terminal.kb("add", "twice.jsonl")
    assert "twice.jsonl:2: the id doc:a is also that of" in shown.err
    assert ids(terminal) == []


def test_personal_records_belong_to_one_user(terminal: KbTerminal) -> None:
    terminal.kb("add", "files/wifi.txt", "--namespace", "personal", "--user", "ada")
    assert ids(terminal) == []
    assert ids(terminal, "--user", "ada") == ["doc:wifi"]
    assert "--namespace personal" in terminal.kb("add", "files/wifi.txt", "--user", "ada").err


def test_a_search_shows_the_answer_and_says_that_only_words_were_compared(terminal: KbTerminal) -> None:
    terminal.kb("add", "files")
    shown = terminal.kb("search", "how many days of vacation do we have")
    assert shown.out.startswith("According to “Vacation policy”: Every employee has 28 days")
    assert "Only words were compared, not meaning: knowledge.embeddings is off." in shown.err
    found = terminal.kb("search", "vacation", "--json").json
    assert [each["id"] for each in found["results"]] == ["doc:vacation"]
    assert found["search"] == "words"
    assert terminal.kb("search", "zebra").out == "Nothing was found.\n"


def test_records_are_removed_all_or_none(terminal: KbTerminal) -> None:
    terminal.kb("add", "files")
    shown = terminal.kb("remove", "doc:wifi", "doc:gone")
    assert (shown.code, "there is no record with the id 'doc:gone'" in shown.err) == (1, True)
    assert ids(terminal) == IDS
    assert terminal.kb("remove", "doc:wifi", "doc:vacation").out == "Removed 2 records.\n"
    assert ids(terminal) == [id for id in IDS if id not in ("doc:wifi", "doc:vacation")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "files", "--namespace", "secret"), "'secret' is not a namespace"),
        (("add", "files", "--type", "recipe"), "'recipe' is not a type"),
        (("show", "doc:gone"), "no record with the id 'doc:gone'"),
        (("search", "  "), "the query is empty"),
    ],
)
def test_wrong_usage_is_explained_in_one_line(terminal: KbTerminal, words: tuple[str, ...], says: str) -> None:
    shown = terminal.kb(*words)
    assert shown.code == 1
    assert says in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_a_pdf_is_read_with_its_title(terminal: KbTerminal) -> None:
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    page = writer.add_blank_page(300, 300)
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    content = DecodedStreamObject()
    content.set_data(b"BT /F1 12 Tf 20 200 Td (The boiler is serviced in June.) Tj ET")
    page[NameObject("/Contents")] = writer._add_object(content)
    writer.add_metadata({"/Title": "The boiler"})
    writer.write(terminal.folder / "boiler.pdf")
    writer.close()
    assert terminal.kb("add", "boiler.pdf").out == "Added 1 records, updated 0.\n"
    assert "serviced in June" in terminal.kb("show", "doc:boiler").out
    terminal.write("broken.pdf", "this is no PDF")
    assert "broken.pdf: it cannot be read as PDF" in terminal.kb("add", "broken.pdf").err


def test_personal_records_are_exported_and_deleted_with_the_data_of_their_user(terminal: KbTerminal) -> None:
    terminal.kb("add", "files/wifi.txt", "--namespace", "personal", "--user", "ada")
    exported = terminal.run("data", "export", "--user", "ada")
    assert json.loads(exported.out)["body"] == "The password is on the whiteboard."
    assert "1 record" in terminal.run("data", "delete", "--user", "ada", "--yes").out
    assert ids(terminal, "--user", "ada") == []


def test_the_doctor_tells_how_records_are_found(terminal: KbTerminal) -> None:
    terminal.kb("add", "files")
    shown = terminal.run("doctor", ANTIPHON_KNOWLEDGE__EMBEDDINGS="false")
    assert "knowledge base: 5 records, found by words (knowledge.embeddings is off)" in shown.out
