"""`/images/{name}`: the images that tools have made.

An `<img>` of a page cannot show a token, so the address itself is the permission: it has 256 random bits, only its
owner's client is told it, and it is in no list. The guard checks Host and Origin as for any route.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import Refusal, RefusalCode

MEDIA_TYPE: Final = "image/png"
PATH: Final = "/images/{name}"
HEADERS: Final = {
    # An image never changes. It is private: a shared cache would keep it after it was deleted.
    "cache-control": "private, max-age=31536000, immutable",
    # Opened on its own, it is a picture and nothing else, whatever a browser makes of its bytes.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "content-disposition": "inline",
    # Pages of other origins that embed the client show its images too.
    "cross-origin-resource-policy": "cross-origin",
}


async def show_image(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    found = None if deps.images is None else await deps.images.read(request.path_params["name"])
    if found is None:
        raise Refusal(RefusalCode.NOT_FOUND, "There is no such image. It may have been deleted.")
    record, content = found
    return Response(content, headers=HEADERS, media_type=record.media_type)
