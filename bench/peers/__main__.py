"""`python -m bench.peers MODULE`: one of the peers, which measures a round a line of input."""

import asyncio
import os
import sys
from importlib import import_module

if __name__ == "__main__":
    # Left on, these would send traces to their makers.
    os.environ |= {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
    asyncio.run(import_module(f"bench.peers.{sys.argv[1]}").main())
