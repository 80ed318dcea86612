"""The path of a request inside the application. Pure.

An application that is mounted under a prefix sees the whole path, and the prefix as its `root_path`.
"""

from collections.abc import Mapping
from typing import Any, Final

API: Final = "/api/"
VERSIONED: Final = "/api/v1/"


def local_path(scope: Mapping[str, Any]) -> str:
    """Returns the path without the prefix under which the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path


def versioned(path: str) -> str:
    """Returns the documented path of a route: `/api/v1/chat` for `/api/chat`. Other paths have no version."""
    return path if path.startswith(VERSIONED) or not path.startswith(API) else VERSIONED + path.removeprefix(API)


def unversioned(path: str) -> str:
    """Returns the alias of a path: `/api/chat` for `/api/v1/chat`."""
    return API + path.removeprefix(VERSIONED) if path.startswith(VERSIONED) else path
