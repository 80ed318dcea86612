#!/bin/sh
# The entry point of the container: `docker run antiphon COMMAND` is `antiphon COMMAND`. Before the server starts, the model
# files that are missing are downloaded into the volume, which takes a minute once and a moment afterwards.
set -eu

if [ "${1:-serve}" = serve ]; then
  antiphon models pull || echo "The server starts without these models; the voice may be missing." >&2
fi
exec antiphon "$@"
