"""Reads bytes from the front, and checks that none are left unread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


class Malformed(ValueError):
    """Bytes that do not follow the specification; the text says what and where."""


class Reader:
    """Reads values from the front of bytes."""

    def __init__(self, data: bytes, what: str, base: int = 0) -> None:
        self.data, self.what, self.at, self._base = data, what, 0, base

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def fail(self, why: str) -> Malformed:
        return Malformed(f"{self.what}, byte {self._base + self.at}: {why}")

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise self.fail(f"{count} bytes wanted, {self.left} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return int.from_bytes(self.take(2))

    def u32(self) -> int:
        return int.from_bytes(self.take(4))

    def v8(self, least: int = 0, most: int = 255) -> bytes:
        return self._vector(self.u8(), least, most)

    def v16(self, least: int = 0, most: int = 65535) -> bytes:
        return self._vector(self.u16(), least, most)

    def _vector(self, count: int, least: int, most: int) -> bytes:
        if not least <= count <= most:
            raise self.fail(f"a vector of {count} bytes, {least} to {most} allowed")
        return self.take(count)

    def choice(self, *allowed: int) -> int:
        value = self.u8()
        if value not in allowed:
            raise self.fail(f"{value} is none of {allowed}")
        return value

    def end(self) -> None:
        if self.left:
            raise self.fail(f"{self.left} bytes too many")


def whole(data: bytes, what: str, read: Callable[[Reader], Value]) -> Value:
    """Reads a value that must use up all the bytes."""
    reader = Reader(data, what)
    value = read(reader)
    reader.end()
    return value


def many(data: bytes, what: str, read: Callable[[Reader], Value]) -> tuple[Value, ...]:
    """Reads values until the bytes are used up."""
    reader, values = Reader(data, what), []
    while reader.left:
        values.append(read(reader))
    return tuple(values)
