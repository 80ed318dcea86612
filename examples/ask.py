"""Asks a server questions from the command line, in one conversation.

Start a server with `antiphon serve`, then run:

    python examples/ask.py "What is 2 plus 3?" "And times 10?"
    python examples/ask.py --url https://talk.example.org --token apn_… "What time is it in Tokyo?"
"""

import argparse
import asyncio
import sys

from antiphon.client import ClientError, ConfirmationRequest, connect


def approve(request: ConfirmationRequest) -> bool:
    """Nothing that needs approval is done without a yes."""
    return input(f"{request.preview} [y/N] ").strip().lower() in ("y", "yes")


async def main() -> None:
    parser = argparse.ArgumentParser(description="Ask an Antiphon server.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--token")
    parser.add_argument("questions", nargs="+")
    given = parser.parse_args()
    async with connect(given.url, token=given.token) as conversation:
        for question in given.questions:
            answer = await conversation.ask(question, confirm=approve)
            print(answer.text)
            for tool in answer.tools:
                print(f"  {tool.title or tool.name} {tool.args} -> {tool.result}")
            if answer.metrics is not None:
                print(f"  after {answer.metrics.total_ms:.0f} ms")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"ask.py: {error}")
