"""Makes a picture, stores it and shows it."""

import re
from collections.abc import Sequence
from typing import Final

from antiphon.tools.capabilities.images import Shape
from antiphon.tools.context import Args, Context, Messaging
from antiphon.tools.errors import ToolError
from antiphon.tools.messages import Image
from antiphon.tools.result import ToolResult, ok

MAX_CAPTION_CHARS: Final = 200

SENSITIVE: Final = re.compile(
    r"\b(?:nud(?:e|es|ity|ist)|naked|topless|lingerie|erotic\w*|sexy|sexual\w*|porn\w*|nsfw|fetish\w*|hentai"
    r"|gor(?:e|y)|blood(?:y|ied|bath)?|behead\w*|decapitat\w*|dismember\w*|mutilat\w*|tortur\w*|corpse\w*|dead bod\w+"
    r"|murder\w*|massacre\w*|execution|suicid\w*|self[- ]?harm\w*|genocid\w*|terroris\w*|bomb(?:s|ing|er)?"
    r"|guns?|rifles?|shooting|swastikas?|nazi\w*|hitler|isis|ku klux klan|cocaine|heroin|meth(?:amphetamine)?"
    r"|deep ?fake\w*|passports?|id cards?|banknotes?|undress\w*)\b",
    re.IGNORECASE,
)
"""Words that a picture may have good reasons for, and for which the user is asked first."""

ASKING: Final = re.compile(
    r"\b(?:draw\w*|drew|paint\w*|sketch\w*|illustrat\w*|render\w*|depict\w*|visuali[sz]\w*|doodle\w*"
    r"|pictures?|images?|photos?|photographs?|pics?|portraits?|posters?|logos?|icons?|wallpapers?|banners?|artwork"
    r"|cartoons?|comics?|avatars?|drawings?|prompts?|graphics?|thumbnails?"
    # Other languages: German, French, Spanish, Italian, Portuguese, Dutch
    r"|bild\w*|zeichn\w*|mal(?:e|en)?|foto\w*|dessin\w*|peins|peindre|imagen\w*|dibuj\w*|pint\w*|immagin\w*|disegn\w*"
    r"|imagem|imagens|desenh\w*|teken\w*|plaatje\w*|afbeelding\w*)\b"
    # Chinese, Japanese, Korean, Russian
    r"|画|圖|图|絵|写真|그림|이미지|рису\w*|карти\w*|изображ\w*",
    re.IGNORECASE,
)


def needs_confirmation(args: Args, untrusted: bool) -> bool:
    return untrusted or SENSITIVE.search(args["prompt"]) is not None


def is_asked_for(args: Args, heard: Sequence[str]) -> bool:
    return any(ASKING.search(words) for words in heard)


def preview(args: Args) -> str:
    return f"Shall I make a picture of “{_shorten(args['prompt'])}”?"


async def execute(args: Args, context: Context) -> ToolResult:
    prompt = " ".join(args["prompt"].split())
    size = args.get("size")
    made = await context.images.generate(prompt, None if size is None else Shape(size))
    caption = _shorten(prompt)
    is_shown = await _show(context.messaging, Image(url=made.url, caption=caption))
    return ok(
        {
            "url": made.url,
            "caption": caption,
            "shown": is_shown,
            "media_type": made.media_type,
            "size_bytes": made.size_bytes,
            "model": made.model,
        },
        spoken="Here is your picture." if is_shown else "I've made the picture, but I couldn't show it to you.",
    )


async def _show(messaging: Messaging, image: Image) -> bool:
    # The picture is made and paid for: a page that is gone must not undo that.
    try:
        await messaging.send(image)
    except ToolError:
        return False
    return True


def _shorten(prompt: str) -> str:
    text = " ".join(prompt.split())
    return text if len(text) <= MAX_CAPTION_CHARS else f"{text[: MAX_CAPTION_CHARS - 1].rstrip()}…"
