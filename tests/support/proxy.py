"""A login's proxy in front of a dashboard: it names the user of every connection in a header, nothing else."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

END = b"\r\n\r\n"  # of a request's head


@contextmanager
def named(user: str, port: int, header: str = "X-Forwarded-Email") -> Iterator[str]:
    """The address behind which the server on ``port`` sees this user."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = b""
            while END not in head:
                if not (more := self.request.recv(65536)):
                    return
                head += more
            first, rest = head.split(b"\r\n", 1)
            with socket.create_connection(("127.0.0.1", port)) as server:
                server.sendall(b"\r\n".join((first, f"{header}: {user}".encode(), rest)))
                threading.Thread(target=_pass_on, args=(server, self.request), daemon=True).start()
                _pass_on(self.request, server)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}"
        finally:
            proxy.shutdown()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Until one side has ended."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
