"""`python -m bench.speech CONTENDER MODELS_DIR`: a recogniser that answers each line of input."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    import_module(f"bench.speech.{sys.argv[1]}").main(Path(sys.argv[2]))
