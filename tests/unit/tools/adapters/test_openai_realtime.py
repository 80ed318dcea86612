from openai.types.realtime import RealtimeFunctionTool, RealtimeFunctionToolParam
from pydantic import TypeAdapter

from antiphon.tools.adapters.openai_realtime import adapt
from tests.fakes.schemas import KB_SEARCH_PARAMETERS, make_spec


def test_the_declaration_is_flat() -> None:
    assert adapt(make_spec()) == {
        "type": "function",
        "name": "kb_search",
        "description": "Searches the knowledge base.",
        "parameters": KB_SEARCH_PARAMETERS,
    }


def test_openais_sdk_reads_back_what_it_was_given() -> None:
    tool = adapt(make_spec())
    assert RealtimeFunctionTool.model_validate(tool).model_dump(exclude_unset=True) == tool


def test_it_is_what_openais_sdk_asks_for_in_a_request() -> None:
    tool = adapt(make_spec())
    assert TypeAdapter(RealtimeFunctionToolParam).validate_python(tool, strict=True) == tool
