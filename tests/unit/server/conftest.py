"""The real tools and the offline assistant, compiled once for all tests of the routes."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from antiphon.authoring import build
from antiphon.compose import TOOLKIT
from antiphon.models.builtin import BuiltinModel
from antiphon.tools.registry import Registry
from tests.fakes.web import WebApp, WebApps


@pytest.fixture(scope="session")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    path: Path = tmp_path_factory.mktemp("tools") / "tool_registry.json"
    build.write(build.build([TOOLKIT], shipped=TOOLKIT), path)
    registry = Registry.load(path, environment="production")
    # As a server does after its start.
    registry.snapshot().warm()
    return registry


@pytest.fixture(scope="session")
def builtin(toolkit: Registry) -> BuiltinModel:
    model = BuiltinModel(toolkit.snapshot())
    model.compile()
    return model


@pytest.fixture
async def apps() -> AsyncIterator[WebApps]:
    apps = WebApps()
    yield apps
    await apps.aclose()


@pytest.fixture
def offline(apps: WebApps, toolkit: Registry, builtin: BuiltinModel) -> Callable[[], WebApp]:
    """A server with the offline assistant and the built-in tools."""
    return lambda: apps.open(*toolkit.tools.values(), text=builtin)
