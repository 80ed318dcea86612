"""The vocabulary of picture prompts: media, compositions, light and moods, and which words of an idea decide them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Medium:
    name: str
    words: tuple[str, ...]
    """The words by which an idea or a style names it."""
    described: str


MEDIA: Final = (
    Medium(
        "photograph",
        ("photo", "photograph", "photography", "photorealistic", "photographic", "realistic"),
        "a natural photograph with a 35 mm lens and a shallow depth of field",
    ),
    Medium(
        "watercolour",
        ("watercolour", "watercolor", "aquarelle"),
        "a watercolour on rough paper, with loose washes and edges left white",
    ),
    Medium(
        "oil painting",
        ("oil", "painting", "painted", "impressionist", "impressionism"),
        "an oil painting with broad, confident brushwork and visible texture",
    ),
    Medium(
        "gouache illustration",
        ("gouache", "illustration", "illustrated", "storybook", "picture book"),
        "a gouache illustration in flat shapes with a fine paper grain",
    ),
    Medium(
        "ink drawing",
        ("ink", "drawing", "line art", "pen"),
        "a pen and ink drawing, with hatching for the shadows and a single grey wash",
    ),
    Medium(
        "linocut",
        ("linocut", "woodcut", "print", "printmaking", "block print"),
        "a two-colour linocut with bold carved lines and a slightly uneven print",
    ),
    Medium(
        "pencil sketch",
        ("pencil", "sketch", "charcoal", "graphite"),
        "a soft pencil sketch, detailed at the centre and only hinted at towards the edges",
    ),
    Medium(
        "3D render",
        ("3d", "render", "cgi", "clay", "isometric"),
        "a 3D render in matte clay materials, with soft contact shadows",
    ),
    Medium(
        "poster",
        ("poster", "vintage", "retro", "travel poster", "screen print"),
        "a screen-printed travel poster in a few flat colours, with a clear silhouette",
    ),
    Medium(
        "pixel art",
        ("pixel", "pixel art", "8-bit", "16-bit"),
        "16-bit pixel art with a limited palette and crisp, deliberate pixels",
    ),
    Medium(
        "comic panel",
        ("comic", "cartoon", "manga", "anime", "graphic novel"),
        "a comic panel with clean outlines, flat colours and one strong shadow",
    ),
)

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "person": (
        *("man", "woman", "person", "people", "boy", "girl", "child", "children", "friend", "portrait", "face"),
        *("mother", "father", "grandmother", "grandfather", "family", "dancer", "musician", "sailor", "chef", "king"),
        *("queen", "wizard", "knight", "astronaut", "doctor", "teacher", "couple", "baby"),
    ),
    "animal": (
        *("cat", "cats", "dog", "dogs", "bird", "birds", "horse", "fox", "owl", "bear", "wolf", "fish", "whale"),
        *("lion", "tiger", "elephant", "rabbit", "dragon", "otter", "puppy", "kitten", "deer", "bee", "penguin"),
    ),
    "place": (
        *("mountain", "mountains", "forest", "sea", "ocean", "lake", "river", "beach", "coast", "desert", "valley"),
        *("field", "fields", "garden", "landscape", "island", "sky", "waterfall", "meadow", "park", "harbour"),
    ),
    "building": (
        *("house", "cabin", "castle", "lighthouse", "tower", "bridge", "church", "city", "street", "village", "square"),
        *("cathedral", "barn", "cottage", "skyscraper", "temple", "ruin", "ruins", "station", "library", "room"),
    ),
    "object": (
        *("cup", "teapot", "coffee", "cake", "bread", "fruit", "flower", "flowers", "vase", "book", "car", "bicycle"),
        *("boat", "ship", "guitar", "chair", "watch", "bottle", "shoe", "robot", "pizza", "apple", "logo", "icon"),
    ),
}
"""What an idea may be of, and the words that say so. The first kind with a word in the idea decides."""

COMPOSITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "person": (
        "a half-length view at eye level, with the subject a third from the edge and looking into the open space",
        "a close view of the face and hands against a plain, softly blurred background",
        "a full figure, small within the surroundings, so that the place tells as much as the person",
        "a view from behind over the shoulder, towards what the subject is looking at",
    ),
    "animal": (
        "at the animal's eye level, close, with sharp eyes and a soft background",
        "a small figure in a wide, quiet setting, with plenty of empty space to one side",
        "in the middle of a movement, slightly off-centre, with room to move into",
        "curled into the frame, seen from above, so that the shape becomes almost abstract",
    ),
    "place": (
        "a wide view with a low horizon, a path or shoreline leading in from the corner",
        "layers of foreground, middle and distance, each paler than the one before",
        "framed by dark branches or rock close to the viewer, with the light beyond",
        "seen from high above, so that the lines of the land make the pattern",
    ),
    "building": (
        "from a low viewpoint, off-centre, with its lines rising to the upper third",
        "straight on and symmetrical, calm, with a wide margin of sky or wall",
        "seen at a distance through the surroundings, small but the brightest point of the picture",
        "a detail at close range, a door, a window or a corner that stands for the whole",
    ),
    "object": (
        "alone on a plain surface, seen from slightly above, with a generous empty margin",
        "very close, so that material and texture fill the frame",
        "in use, with hands or traces of somebody at the edge of the picture",
        "arranged with two or three simple companions in a loose triangle",
    ),
    "scene": (
        "a wide view with the main subject on the left third and open space beside it",
        "an intimate, close view with one clear focal point and a soft background",
        "from a low viewpoint, with something in the foreground out of focus to give depth",
        "seen from above at an angle, with the lines leading to the middle",
    ),
}

LIGHTS: Final[Mapping[str, tuple[str, ...]]] = {
    "evening": (
        "the last warm light low from the side against a cool violet sky",
        "blue hour, with one warm lamp as the only bright point",
        "a thin band of orange on the horizon, and everything nearer almost a silhouette",
    ),
    "night": (
        "moonlight from behind, with cool rims and deep, readable shadows",
        "a single warm lamp in the dark, its light falling off quickly",
        "starlight and a faint glow from beyond the edge of the picture",
    ),
    "morning": (
        "pale early light through thin mist, with long soft shadows",
        "the first low sun, golden on one side and blue in the shade",
        "clear, cool morning light that picks out every edge",
    ),
    "weather": (
        "flat, silvery light under heavy cloud, with wet surfaces reflecting it",
        "a break in the clouds that lights only the subject",
        "diffuse light that swallows the distance",
    ),
    "winter": (
        "low winter sun, with blue shadows on the snow",
        "soft grey light before snowfall, in which small colours glow",
        "a clear cold sky, with hard light and long shadows",
    ),
    "day": (
        "soft window-like light from one side, with gentle shadows",
        "late afternoon sun, warm and low, with long shadows",
        "bright overcast light, even and clear, so that the colours carry the picture",
        "strong light from behind, with a glowing outline",
    ),
}

TIMES: Final[Mapping[str, tuple[str, ...]]] = {
    "night": ("night", "midnight", "moon", "moonlight", "moonlit", "stars", "starry", "dark"),
    "evening": ("dusk", "sunset", "evening", "twilight", "nightfall", "golden hour"),
    "morning": ("dawn", "sunrise", "morning", "daybreak"),
    "winter": ("snow", "snowy", "winter", "ice", "icy", "frost", "frozen"),
    "weather": ("rain", "rainy", "storm", "stormy", "fog", "foggy", "mist", "misty", "cloudy", "thunder"),
}
"""Which words of an idea decide its light. The first with a word in the idea does."""

PALETTES: Final = (
    "muted blues and greys with one warm accent",
    "earthy ochres and greens, slightly faded",
    "a few saturated colours against a pale ground",
    "warm cream, rust and deep teal",
    "nearly monochrome, with a single strong colour where the eye should rest",
)

MOODS: Final = (
    "calm and a little wistful",
    "bright and playful",
    "still and solemn",
    "warm and welcoming",
    "mysterious, as if something is about to happen",
)
MOOD_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "tense and dramatic": ("storm", "stormy", "battle", "dramatic", "thunder", "wild", "angry"),
    "bright and playful": ("funny", "silly", "playful", "happy", "party", "cute", "birthday"),
    "calm and a little wistful": ("lonely", "sad", "quiet", "empty", "abandoned", "autumn"),
    "still and solemn": ("solemn", "sacred", "ancient", "cathedral", "temple"),
}
"""Moods that the words of an idea ask for."""
