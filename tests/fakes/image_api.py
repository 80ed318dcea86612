"""The image APIs of OpenAI and Gemini on loopback. They look at requests as closely as the originals."""

import base64
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

from tests.fakes.chat_server import Answer, Request, refusal

KEY: Final = "sk-image-test"
OPENAI_MODEL: Final = "gpt-image-2.5-flare"
GEMINI_MODEL: Final = "gemini-3.1-flash-image"
FORBIDDEN: Final = "something forbidden"
"""A prompt with these words is declined."""

GPT_PARAMETERS: Final = frozenset(
    (
        "model",
        "prompt",
        "n",
        "size",
        "quality",
        "background",
        "moderation",
        "output_format",
        "output_compression",
        "user",
    )
)
OLD_PARAMETERS: Final = frozenset(("model", "prompt", "n", "size", "quality", "style", "response_format", "user"))
GPT_SIZES: Final = ("auto", "1024x1024", "1536x1024", "1024x1536")


def make_png(width: int = 2, height: int = 2) -> bytes:
    """Makes a valid picture in one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x33\x66\x99" * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNG: Final = make_png()
JPEG: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(40) + b"\xff\xd9"
WEBP: Final = b"RIFF\x24\x00\x00\x00WEBPVP8 " + bytes(24)
SVG: Final = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def told(body: Any) -> Answer:
    """A whole answer in JSON, or with the bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer((content,), headers={"content-type": "application/json"})


def encoded(image: bytes) -> str:
    return base64.b64encode(image).decode()


def openai_answer(image: bytes = PNG) -> Answer:
    return told({"created": 1_790_000_000, "data": [{"b64_json": encoded(image)}], "output_format": "png"})


def openai_refusal(status: int, message: str, code: str | None = None, **headers: str) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return refusal(status, {"error": error}, **headers)


def openai_api(model: str = OPENAI_MODEL) -> Callable[[Request], Answer]:
    """OpenAI's `POST /v1/images/generations`, as it is for its own models and as it was for the older ones."""
    is_gpt = model.startswith("gpt-image")

    def answer(request: Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return openai_refusal(401, f"Incorrect API key provided: {KEY[:6]}***.", "invalid_api_key")
        if (request.method, request.path) != ("POST", "/v1/images/generations"):
            return openai_refusal(404, f"Invalid URL ({request.method} {request.path})")
        body = request.body
        if body.get("model") != model:
            return openai_refusal(404, f"The model '{body.get('model')}' does not exist.", "model_not_found")
        for name in body.keys() - (GPT_PARAMETERS if is_gpt else OLD_PARAMETERS):
            return openai_refusal(400, f"Unknown parameter: '{name}'.", "unknown_parameter")
        if body.get("size", "auto") not in GPT_SIZES and is_gpt:
            return openai_refusal(400, f"Invalid value: '{body['size']}'.", "invalid_value")
        if FORBIDDEN in body["prompt"]:
            message = "Your request was rejected by the safety system. safety_violations=[violence]."
            return openai_refusal(400, message, "moderation_blocked")
        if not is_gpt and body.get("response_format", "url") == "url":
            return told({"created": 1, "data": [{"url": "https://images.example.org/1.png", "revised_prompt": "x"}]})
        return openai_answer()

    return answer


def gemini_answer(*parts: dict[str, Any], finish: str = "STOP") -> Answer:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    return told({"candidates": [candidate], "modelVersion": GEMINI_MODEL, "usageMetadata": {"totalTokenCount": 1300}})


def gemini_image(image: bytes = PNG, media_type: str = "image/png", **fields: Any) -> dict[str, Any]:
    return {"inlineData": {"mimeType": media_type, "data": encoded(image)}, **fields}


def gemini_refusal(status: int, name: str, message: str, *details: dict[str, Any]) -> Answer:
    return refusal(status, {"error": {"code": status, "message": message, "status": name, "details": list(details)}})


def gemini_api(request: Request) -> Answer:
    """Gemini's `generateContent`, as an image model has it."""
    if request.headers.get("x-goog-api-key") != KEY:
        return gemini_refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
    if request.path.partition("?")[0] != f"/v1beta/models/{GEMINI_MODEL}:generateContent":
        return gemini_refusal(404, "NOT_FOUND", f"{request.path} is not found for API version v1beta.")
    config = request.body.get("generationConfig", {})
    for name in config.keys() - {"responseModalities", "imageConfig"}:
        return gemini_refusal(400, "INVALID_ARGUMENT", f'Invalid JSON payload received. Unknown name "{name}".')
    if "IMAGE" not in config.get("responseModalities", ["IMAGE"]):
        return gemini_answer({"text": "Here it is."})
    if FORBIDDEN in request.body["contents"][0]["parts"][0]["text"]:
        return told({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    return gemini_answer(gemini_image())
