from openai.types.chat import ChatCompletionFunctionTool, ChatCompletionFunctionToolParam
from pydantic import TypeAdapter

from antiphon.tools.adapters.openai_chat import adapt
from tests.fakes.schemas import KB_SEARCH_PARAMETERS, make_spec


def test_the_parameters_stand_in_the_function_as_they_are() -> None:
    assert adapt(make_spec()) == {
        "type": "function",
        "function": {
            "name": "kb_search",
            "description": "Searches the knowledge base.",
            "parameters": KB_SEARCH_PARAMETERS,
        },
    }


def test_openais_sdk_reads_back_what_it_was_given() -> None:
    tool = adapt(make_spec())
    assert ChatCompletionFunctionTool.model_validate(tool).model_dump(exclude_unset=True) == tool


def test_it_is_what_openais_sdk_asks_for_in_a_request() -> None:
    tool = adapt(make_spec())
    assert TypeAdapter(ChatCompletionFunctionToolParam).validate_python(tool, strict=True) == tool
