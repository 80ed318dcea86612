"""Exits with 0 if the server in this container is ready. It needs no package, so that it starts in a moment."""

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

TIMEOUT_S = 4.0


def is_ready(port: int) -> bool:
    # The server is the one in this container, so its certificate does not matter.
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    for connection in (
        HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S),
        HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=unverified),
    ):
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            continue  # it speaks the other of the two, or it does not listen yet
        finally:
            connection.close()
    return False


if __name__ == "__main__":
    sys.exit(0 if is_ready(int(os.environ.get("ANTIPHON_SERVER__PORT") or 8000)) else 1)
