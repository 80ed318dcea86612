# mypy: ignore-errors
"""`python -m bench.approval.livekit_agent URL SAYINGS`: a text session of LiveKit Agents whose tool requires approval.

The model is LiveKit's own OpenAI plugin, which talks to the server at URL. For each of the sayings, which are a JSON
list, it prints what became of the model's calls, as a line of JSON.
"""

import asyncio
import json
import logging
import sys

from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.llm.tool_context import APPROVAL_KEY
from livekit.plugins import openai


class Albums(Agent):
    def __init__(self) -> None:
        super().__init__(instructions="You look after photo albums.")
        self.deleted = 0

    @function_tool(requires_approval=True)
    async def delete_album(self, album: str) -> str:
        """Delete an album for good.

        Args:
            album: The name of the album.
        """
        self.deleted += 1
        return f"The album {album} was deleted."


async def main(url: str, sayings: list[str]) -> None:
    agent = Albums()
    async with AgentSession(llm=openai.LLM(model="m", base_url=url, api_key="local")) as session:
        await session.start(agent)
        for said in sayings:
            before = agent.deleted
            result = await session.run(user_input=said)
            calls = [event.item for event in result.events if event.type == "function_call"]
            marks = [call.extra.get(APPROVAL_KEY, "") for call in calls]
            outcomes = ["ran" if mark == "granted" else mark for mark in marks]
            print(json.dumps({"said": said, "outcomes": outcomes, "runs": agent.deleted - before}), flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
