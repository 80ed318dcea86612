"""`make chaos`: conversations with random faults, which depend on the seed alone."""

import argparse
import sys

from tests.chaos.report import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--only", type=int, metavar="N", help="run only the N-th conversation, and print all about it")
    options = parser.parse_args()
    numbers = range(options.conversations) if options.only is None else [options.only]
    return 0 if run(options.seed, numbers, shows_details=options.only is not None) else 1


if __name__ == "__main__":
    sys.exit(main())
