"""A small knowledge base, questions that it answers, and questions that it cannot answer."""

from typing import Final

from antiphon.storage.knowledge import Namespace, Record, RecordType

UPDATED_MS: Final = 1_767_268_800_000
"""2026-01-01 12:00 UTC."""


def record(id: str, title: str, body: str, **more: object) -> Record:
    fields: dict[str, object] = {
        "namespace": Namespace.STUDIO,
        "source_type": "markdown",
        "last_updated_ms": UPDATED_MS,
        **more,
    }
    return Record(id=id, type=RecordType(id.partition(":")[0]), title=title, body=body, **fields)  # type: ignore[arg-type]


HANDBOOK: Final = [
    record(
        "doc:vacation",
        "Vacation policy",
        "Every employee has 28 days of paid vacation a year. Unused days may be carried over until the end of "
        "March.\n\nAsk your team lead for approval at least two weeks before you leave. Sick days do not count "
        "as vacation.",
        tags=("hr", "policy"),
    ),
    record(
        "doc:expenses",
        "Expense policy",
        "# Travel\n\nTrain tickets are booked in second class. Flights need the approval of the finance team.\n\n"
        "# Meals\n\nMeals with clients are reimbursed up to 45 euros per person. Send the receipts to Priya within "
        "30 days.\n",
        tags=("finance", "policy"),
    ),
    record(
        "doc:munich_office",
        "Munich office",
        "The Munich office is on the third floor of Lindwurmstrasse 88. The wifi network is called Studio-Guest and "
        "its password is on the whiteboard in the kitchen. The office opens at eight in the morning. The door code is "
        "4471.",
        tags=("office",),
    ),
    record(
        "person:andrei_clodius",
        "Andrei Clodius",
        "Andrei Clodius is the founder and chief executive of FRAM, a studio for automation with AI. He lives in Oslo "
        "and plays the cello.",
        url="https://www.linkedin.com/in/andrei-example",
        metadata={"role": "founder", "company": "FRAM"},
        tags=("fram",),
    ),
    record(
        "person:priya_raman",
        "Priya Raman",
        "Priya Raman leads the finance team. Her extension is 217. She is out of office on Fridays.",
        metadata={"linkedin": "https://linkedin.com/in/priya-example"},
    ),
    record(
        "project:heron",
        "Project Heron",
        "Heron is the new billing system for hospitals. It replaces the old spreadsheets of the accounting department. "
        "The launch is planned for the ninth of April, and the budget is 180,000 euros. Marta Kowalska manages it.",
        tags=("billing", "active"),
    ),
    record(
        "project:lantern",
        "Project Lantern",
        "Lantern was a chatbot for a museum in Ghent. It was finished in 2024. The source code is archived on the old "
        "server.",
        tags=("archived",),
    ),
    record(
        "process:release",
        "How we release software",
        "Releases happen on Tuesdays. Before a release, the tests must be green and two people must have reviewed the "
        "change.\n\nIf something breaks in production, roll back first and look for the cause afterwards. The person "
        "on call writes a report within two days.",
        tags=("engineering",),
    ),
    record(
        "process:onboarding",
        "Onboarding of new colleagues",
        "On the first day, a new colleague gets a laptop, a badge and a tour of the building. A mentor helps during "
        "the first three months. Payroll needs the bank details before the fifteenth.",
        tags=("hr",),
    ),
    record(
        "doc:coffee",
        "The coffee machine",
        "Descale the coffee machine every month with citric acid. Press both buttons for five seconds to start the "
        "cleaning programme. Beans are ordered from Rösterei Vier.",
        tags=("office",),
    ),
    record(
        "doc:backup",
        "Backups",
        "All servers are backed up every night at two. Backups are kept for ninety days in a second data centre in "
        "Falkenstein. A restore takes about four hours.",
        tags=("it",),
    ),
    record(
        "link:brand_guide",
        "Brand guide",
        "The logo, the colours and the fonts. The primary colour is teal, and headlines are set in Archivo.",
        url="https://example.org/brand",
        tags=("design",),
    ),
]

KNOWN: Final = (
    ("how many days of vacation do I have", "doc:vacation", "28 days"),
    ("how many vacation days do we get per year", "doc:vacation", "28 days"),
    ("until when can I carry over unused vacation", "doc:vacation", "March"),
    ("what is the wifi password in the munich office", "doc:munich_office", "whiteboard"),
    ("what's the door code of the munich office", "doc:munich_office", "4471"),
    ("when does the munich office open", "doc:munich_office", "eight"),
    ("who is the founder of fram", "person:andrei_clodius", "Andrei"),
    ("who is andrei clodius", "person:andrei_clodius", "founder"),
    ("what is the extension of priya raman", "person:priya_raman", "217"),
    ("who leads the finance team", "person:priya_raman", "Priya"),
    ("what is the budget of project heron", "project:heron", "180,000"),
    ("who manages the heron project", "project:heron", "Marta"),
    ("when is the launch of heron", "project:heron", "April"),
    ("what is project heron", "project:heron", "billing"),
    ("what was lantern", "project:lantern", "museum"),
    ("on which day do we release software", "process:release", "Tuesdays"),
    ("what should I do if something breaks in production", "process:release", "roll back"),
    ("what does a new colleague get on the first day", "process:onboarding", "laptop"),
    ("how do I descale the coffee machine", "doc:coffee", "citric"),
    ("how often should the coffee machine be descaled", "doc:coffee", "every month"),
    ("how long are backups kept", "doc:backup", "ninety"),
    ("how long does a restore take", "doc:backup", "four hours"),
    ("what is our primary colour", "link:brand_guide", "teal"),
    ("are meals with clients reimbursed", "doc:expenses", "45"),
    ("do flights need approval", "doc:expenses", "finance"),
)
"""Questions that share words with their records: also without vectors, these are answered."""

PARAPHRASED: Final = (
    ("how much paid holiday do employees have", "doc:vacation"),
    ("who is in charge of the billing system for hospitals", "project:heron"),
    ("how do I clean the coffee maker", "doc:coffee"),
    ("at what time are the servers backed up", "doc:backup"),
    ("which font is used for headlines", "link:brand_guide"),
    ("who is the boss of fram", "person:andrei_clodius"),
    ("what happened to the museum chatbot", "project:lantern"),
)
"""Questions in other words than their records."""

UNKNOWN: Final = (
    "what is the capital of france",
    "who won the world cup in 2014",
    "how do I bake sourdough bread",
    "what is the meaning of life",
    "how tall is mount everest",
    "what is the wifi password in the berlin office",
    "what is the budget of project falcon",
    "who is the founder of microsoft",
    "what is the phone number of the dentist",
    "when does the supermarket open",
    "how many days are in a leap year",
    "who manages the marketing team",
    "what is the launch date of the iphone",
    "how do I reset my bank password",
    "which train goes to vienna",
    "how long do elephants live",
    "what colour is the sky",
    "how do I fix a flat tyre",
    "where can I buy citric acid",
    "who invented the cello",
    "how many people live in oslo",
    "what is the salary of priya raman",
    "when is marta kowalska's birthday",
    "what did andrei have for lunch",
    "is the museum in ghent open on sundays",
    "how much does a coffee machine cost",
    "who broke the printer on monday",
    "what is the best programming language",
    "why is the sea salty",
    "can you sing me a song about april",
)
"""Questions about other things, some of them in the words of the records."""
