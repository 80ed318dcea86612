"""Chats with a server through OpenAI's own client, with Antiphon's tools behind it.

Run `pip install openai`, start a server with `antiphon serve`, then run:

    python examples/openai_chat.py "What is 2 plus 3?"
"""

import argparse

from openai import OpenAI


def main() -> None:
    parser = argparse.ArgumentParser(description="Chat with an Antiphon server through OpenAI's client.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    # OpenAI's client needs a key. A server that requires no token ignores it.
    parser.add_argument("--token", default="none")
    parser.add_argument("question")
    given = parser.parse_args()
    client = OpenAI(base_url=f"{given.url}/v1", api_key=given.token)
    answer = client.chat.completions.create(
        model="antiphon", messages=[{"role": "user", "content": given.question}], stream=True
    )
    for chunk in answer:
        print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
