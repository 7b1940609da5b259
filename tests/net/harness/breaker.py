# SPDX-License-Identifier: Apache-2.0
"""A TCP relay in front of a server that breaks the connection at a chosen byte string of the client."""
import socket
import threading

from .ports import free_port


class Breaker:
    """`mode` is looked at when the client sends `trigger`:
    pass      everything goes through
    cut       the client's bytes are thrown away and both sides are closed
    cut_after the client's bytes arrive, the answer does not: both sides are closed once the server has answered
    hold      as cut_after, but the client's side stays open and silent"""

    def __init__(self, server_port, trigger):
        self.server_port, self.trigger, self.mode = server_port, trigger, "pass"
        self.refuses = False  # new connections
        self.port = free_port()
        self.triggered = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.server_port), 10)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            state = {"mute": None}
            threading.Thread(target=self._from_client, args=(client, server, state), daemon=True).start()
            threading.Thread(target=self._from_server, args=(client, server, state), daemon=True).start()

    @staticmethod
    def _close(*sockets):
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _from_client(self, client, server, state):
        try:
            while True:
                data = client.recv(65536)
                if not data:
                    break
                if self.trigger in data and self.mode != "pass":
                    mode, self.mode = self.mode, "pass"
                    self.triggered.set()
                    if mode == "cut":
                        break
                    state["mute"] = mode
                server.sendall(data)
        except OSError:
            pass
        self._close(client, server)

    def _from_server(self, client, server, state):
        try:
            while True:
                data = server.recv(65536)
                if not data:
                    break
                if state["mute"] == "cut_after":
                    break
                if state["mute"] != "hold":
                    client.sendall(data)
        except OSError:
            pass
        self._close(client, server)

    def close(self):
        self.listener.close()
