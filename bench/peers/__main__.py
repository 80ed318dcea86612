"""`python -m bench.peers MODULE`: one of the peers, which measures a round for each line of input."""

import asyncio
import os
import sys
from importlib import import_module

if __name__ == "__main__":
    # By default, these would send traces to their vendors.
    os.environ |= {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
    asyncio.run(import_module(f"bench.peers.{sys.argv[1]}").main())
