"""Inside a sandbox: pass every connection to a listening socket on to the host's proxy, through a unix socket.

Runs with the image's python3 as ``python3 -I -S -B relay.py FD SOCKET``; standard library only. FD listens already.
"""

import selectors
import socket
import sys
import threading

CHUNK = 1 << 16


def pump(first: socket.socket, second: socket.socket) -> None:
    """Copy bytes both ways until both sides have ended."""
    with first, second, selectors.DefaultSelector() as selector:
        selector.register(first, selectors.EVENT_READ, second)
        selector.register(second, selectors.EVENT_READ, first)
        try:
            while selector.get_map():
                for key, _ in selector.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    data = source.recv(CHUNK)
                    if data:
                        key.data.sendall(data)
                    else:
                        selector.unregister(source)
                        key.data.shutdown(socket.SHUT_WR)
        except OSError:
            return


def serve(listener: socket.socket, path: str) -> None:
    """Accept connections for ever."""
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
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
