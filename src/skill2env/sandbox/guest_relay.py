"""Inside a sandbox: pass every connection to a listening socket on to the host's proxy, through a unix socket.

Runs with the image's python3 as ``python3 -I -S -B relay.py FD SOCKET``; standard library only. FD listens already.
"""

import selectors
import socket
import sys
import threading
import time

CHUNK = 1 << 16
CONNECTIONS_AT_MOST = 64
"""As many as the host's side serves."""
PAUSE_SEC = 0.1


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
    """Accept connections for ever; a flood costs the flooder its own connections."""
    slots = threading.BoundedSemaphore(CONNECTIONS_AT_MOST)
    while True:
        slots.acquire()
        try:
            client, _ = listener.accept()
        except OSError:
            slots.release()
            time.sleep(PAUSE_SEC)
            continue
        try:
            threading.Thread(target=carry, args=(client, path, slots), daemon=True).start()
        except RuntimeError:  # no more threads
            client.close()
            slots.release()
            time.sleep(PAUSE_SEC)


def carry(client: socket.socket, path: str, slots: threading.BoundedSemaphore) -> None:
    """Pass one connection on."""
    try:
        with client, socket.socket(socket.AF_UNIX) as upstream:
            upstream.connect(path)
            pump(client, upstream)
    except OSError:
        pass
    finally:
        slots.release()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
