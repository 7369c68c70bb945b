"""Checks many files in one process that has loaded PyTorch. Clients ask by a socket.

    python3 judging.py SOCKET PASSES FILE     asks, and exits with the answer

`fxopt reduce` asks hundreds of times.
"""

import os
import signal
import socket
import sys

SECONDS = 120  # for one file


def serve(path, judge):
    """Answers until it is killed, each request in a process of its own: a crash or a hang is exit
    status 2."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen()
    os.rename(f"{path}.new", path)  # a client that sees it can connect
    while True:
        connection, _ = listener.accept()
        with connection:
            passes, file = _read(connection).split("\0")
            child = os.fork()
            if child == 0:
                signal.alarm(SECONDS)
                status = 2
                try:
                    status = judge(file, passes)
                finally:
                    os._exit(status)
            _, ended = os.waitpid(child, 0)
            status = os.waitstatus_to_exitcode(ended)
            connection.sendall(str(status if status in (0, 1) else 2).encode())


def _read(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts).decode()


def ask(path, passes, file):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(f"{passes}\0{file}".encode())
        connection.shutdown(socket.SHUT_WR)
        return int(_read(connection))


if __name__ == "__main__":
    try:
        sys.exit(ask(*sys.argv[1:4]))
    except (OSError, ValueError):
        sys.exit(2)
