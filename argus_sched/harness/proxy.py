"""A TCP proxy that can take a line away as networks do: cut, silent, late or lossy; it alters nothing else.

It runs as a process of its own, so that the harness's other work does not delay the bytes, and ends when its
standard input does, so that it outlives nobody. Each line of standard input is one command in JSON, each is
answered by one line: `{"do": "open", "line": "w1", "host": …, "port": …, "listen": …}` → `{"port": 40123}`.

A line has two directions, `up` (client to server) and `down`. Each is in one of three states:

    open   bytes pass, after `delay` seconds
    held   bytes and the end of the stream wait, and pass once it is open again: a partition without FIN,
           healed before anybody gave up
    lost   bytes vanish and so does the end of the stream; when the line is healed, connections that lost
           something are reset, since a stream with a hole cannot go on
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

CHUNK = 64 * 1024
DIRECTIONS = ("up", "down")


@dataclass
class Direction:
    """One direction of a line."""

    state: str = "open"
    delay: float = 0.0
    passable: asyncio.Event = field(default_factory=asyncio.Event)

    def become(self, state: str) -> None:
        self.state = state
        if state == "held":
            self.passable.clear()
        else:
            self.passable.set()


class Pipe:
    """One connection through a line: two streams pumped until either side ends."""

    def __init__(self, line: Line, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.line = line
        self.writers = (client, server)
        self.holed = False

    async def pump(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one direction until its end."""
        direction, broken = self.line.directions[name], False
        try:
            while data := await reader.read(CHUNK):
                await self._pass(direction, writer, data)
        except OSError:
            broken = True
        if await self._gate(direction):
            _end(writer, broken)

    def reset(self) -> None:
        """End the connection with RST on both sides."""
        for writer in self.writers:
            with contextlib.suppress(OSError):
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _pass(self, direction: Direction, writer: asyncio.StreamWriter, data: bytes) -> None:
        if direction.delay:
            await asyncio.sleep(direction.delay)
        if await self._gate(direction):
            writer.write(data)
            await writer.drain()

    async def _gate(self, direction: Direction) -> bool:
        """Wait while the direction is held; False when what comes through now is lost."""
        await direction.passable.wait()
        self.holed |= direction.state == "lost"
        return direction.state == "open" and not self.holed


def _end(writer: asyncio.StreamWriter, broken: bool) -> None:
    """Pass on how the other side ended: a reset stays one, since a killed client may leave unread bytes."""
    if broken or writer.is_closing():
        writer.transport.abort()
    else:
        with contextlib.suppress(OSError):
            writer.write_eof()


class Line:
    """One listening port in front of one server."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.directions = {name: Direction() for name in DIRECTIONS}
        for direction in self.directions.values():
            direction.become("open")
        self.pipes: set[Pipe] = set()
        self.port = 0
        self._server: asyncio.Server | None = None

    async def listen(self, host: str) -> None:
        """Accept connections on a free port of `host`."""
        self._server = await asyncio.start_server(self._accept, host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def change(self, states: dict[str, str], delay: float | None) -> None:
        """Set the states of some directions, and the delay of both."""
        for name, state in states.items():
            self.directions[name].become(state)
        for direction in self.directions.values():
            direction.delay = direction.delay if delay is None else delay
        if all(direction.state == "open" for direction in self.directions.values()):
            for pipe in [pipe for pipe in self.pipes if pipe.holed]:
                pipe.reset()

    def cut(self) -> None:
        """Reset every connection."""
        for pipe in list(self.pipes):
            pipe.reset()

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        # A connection attempt crosses the line too: it is no faster and gets no further than its bytes.
        await self.directions["up"].passable.wait()
        try:
            answers, server = await asyncio.open_connection(*self.target)
        except OSError:
            client.transport.abort()
            return
        for writer in (client, server):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pipe = Pipe(self, client, server)
        self.pipes.add(pipe)
        try:
            # Cancelled is every connection that is open at the end; asyncio would print a traceback for each.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(pipe.pump("up", reader, server), pipe.pump("down", answers, client))
        finally:
            self.pipes.discard(pipe)
            for writer in (client, server):
                writer.close()


class Switchboard:
    """All lines of one proxy process, and what each command does to them."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command; the answer is sent back."""
        if command["do"] == "open":
            line = self.lines[command["line"]] = Line(command["host"], command["port"])
            await line.listen(command["listen"])
            return {"port": line.port}
        line = self.lines[command["line"]]
        if command["do"] == "point":
            line.target = (command["host"], command["port"])
        if command["do"] in ("point", "cut"):
            line.cut()
        else:
            line.change(command.get("states", {}), command.get("delay"))
        return {"connections": len(line.pipes)}

    async def run(self) -> None:
        """Obey standard input until it ends."""
        commands = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while command := await commands.readline():
            answer = await self.obey(json.loads(command))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


class Proxy:
    """A proxy process, as its owner sees it. Use it as a context manager."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "argus_sched.harness.proxy"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._one_at_a_time = threading.Lock()

    def open(self, line: str, host: str, port: int, listen: str = "127.0.0.1") -> int:
        """Open a line to a server; returns the port of `listen` to connect to."""
        answer: int = self._ask(do="open", line=line, host=host, port=port, listen=listen)["port"]
        return answer

    def cut(self, line: str) -> None:
        """Reset every connection of a line."""
        self._ask(do="cut", line=line)

    def point(self, line: str, host: str, port: int) -> None:
        """Lead a line to another server, and reset every connection to the old one."""
        self._ask(do="point", line=line, host=host, port=port)

    def hold(self, line: str, *directions: str) -> None:
        """Let nothing through `directions` (both unless named) until `heal`; nothing is lost."""
        self._ask(do="change", line=line, states=dict.fromkeys(directions or DIRECTIONS, "held"))

    def drop(self, line: str, *directions: str) -> None:
        """Lose what is sent in `directions` (both unless named); `heal` resets what lost bytes."""
        self._ask(do="change", line=line, states=dict.fromkeys(directions or DIRECTIONS, "lost"))

    def delay(self, line: str, seconds: float) -> None:
        """Deliver everything `seconds` late, each way."""
        self._ask(do="change", line=line, delay=seconds)

    def heal(self, line: str) -> None:
        """Let everything through again, at once."""
        self._ask(do="change", line=line, states=dict.fromkeys(DIRECTIONS, "open"), delay=0.0)

    def close(self) -> None:
        """End the proxy and every connection through it."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, **command: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the proxy has no pipes")
        with self._one_at_a_time:
            stdin.write(json.dumps(command) + "\n")
            stdin.flush()
            line = stdout.readline()
        if not line:
            raise RuntimeError("the proxy process ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


if __name__ == "__main__":
    asyncio.run(Switchboard().run())
