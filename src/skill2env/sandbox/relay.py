"""Inside a sandbox: listen on 127.0.0.1 and pass every connection to the host's proxy through a unix socket.

Runs with the image's python3 as ``python3 -I -S -B relay.py SOCKET PORT``; standard library only.
"""

import selectors
import socket
import sys
import threading

CHUNK_BYTES = 1 << 16


def pump(first: socket.socket, second: socket.socket) -> None:
    """Copy bytes both ways until one side ends."""
    peer = {first.fileno(): (first, second), second.fileno(): (second, first)}
    with first, second, selectors.DefaultSelector() as selector:
        for number in peer:
            selector.register(number, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                source, target = peer[key.fd]
                data = source.recv(CHUNK_BYTES)
                if not data:
                    return
                target.sendall(data)


def serve(path: str, port: int) -> None:
    """Accept connections for ever."""
    listener = socket.create_server(("127.0.0.1", port), backlog=64)
    while True:
        client, _ = listener.accept()
        upstream = socket.socket(socket.AF_UNIX)
        try:
            upstream.connect(path)
        except OSError:
            client.close()
            upstream.close()
            continue
        threading.Thread(target=pump, args=(client, upstream), daemon=True).start()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
