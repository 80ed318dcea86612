"""A knowledge base for the scripted server: it answers `/api/kb` as the real one does, from a list."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

PATH: Final = "/api/kb"
PASSWORD: Final[dict[str, Any]] = {
    "id": "r1",
    "namespace": "personal",
    "type": "doc",
    "title": "Guest wifi",
    "body": "The **password** of the guest network is `tulip-meadow`.\n\n- It changes in May.\n- Ask Ana.",
    "tags": ["house", "network"],
    "url": None,
    "source_type": "note",
    "source": "",
    "last_updated": "2026-05-04T09:30:00Z",
    "metadata": {},
    "writable": True,
}
BOILER: Final[dict[str, Any]] = PASSWORD | {
    "id": "r2",
    "title": "Boiler manual",
    "type": "process",
    "body": "Press the reset button for five seconds. The pressure must be between 1 and 2 bar.",
    "tags": ["house"],
    "url": "https://boiler.example/manual",
    "last_updated": "2026-03-01T08:00:00Z",
}
SHORT: Final = ("id", "namespace", "type", "title", "tags", "url", "last_updated")


MAX_LIMIT: Final = 50


def plain(body: str) -> str:
    """The beginning of a text without most of Markdown's marks, as a snippet is."""
    return body.replace("**", "").replace("`", "").replace("\n\n- ", " ").replace("\n- ", " ")[:240]


class ScriptedKnowledge:
    """The newest record is the first one."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = [PASSWORD, BOILER]
        self.searches: list[dict[str, str]] = []
        self.posted: list[dict[str, Any]] = []
        self.refusal: str | None = None
        """What every request is refused with."""

    async def answer(self, request: Request) -> Response:
        if self.refusal is not None:
            return JSONResponse({"error": {"code": "unavailable", "message": self.refusal}}, 503)
        id = request.url.path.removeprefix(PATH).removeprefix("/")
        match request.method, id:
            case "GET", "":
                return self._search(dict(request.query_params))
            case "POST", "":
                return self._add(await request.json())
            case method, id:
                return self._find(method, id)

    def _search(self, asked: dict[str, str]) -> Response:
        self.searches.append(asked)
        limit = int(asked["limit"])
        if limit > MAX_LIMIT:
            return JSONResponse({"error": {"code": "bad_request", "message": "`limit` is too high."}}, 400)
        words = asked.get("query", "").lower().split()
        tagged = [record for record in self.records if asked.get("tag") in (None, *record["tags"])]
        found = [
            {name: record[name] for name in SHORT} | {"snippet": plain(record["body"]), "score": 0.9}
            for record in tagged
            if all(word in f"{record['title']} {record['body']}".lower() for word in words)
        ]
        return JSONResponse({"results": found[:limit], "total": len(tagged)})

    def _add(self, given: dict[str, Any]) -> Response:
        self.posted.append(given)
        record = PASSWORD | {"id": f"n{len(self.posted)}", "tags": [], "url": None} | given
        self.records.insert(0, record)
        return JSONResponse(record, 201)

    def _find(self, method: str, id: str) -> Response:
        record = next((record for record in self.records if record["id"] == id), None)
        if record is None:
            return JSONResponse({"error": {"code": "not_found", "message": "There is no such record."}}, 404)
        if method == "DELETE":
            self.records.remove(record)
            return Response(status_code=204)
        return JSONResponse(record)
