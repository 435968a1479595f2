"""Elliptic curves with Python integers, only for verification: slow, and not constant-time."""

from __future__ import annotations

from dataclasses import dataclass

from interop.wtls.reader import Malformed
from interop.wtls.structures import BinaryField, ECParameters, ParameterSpecifier, PrimeField

Point = tuple[int, int] | None  # None: infinity


@dataclass(frozen=True)
class Curve:
    """y² = x³ + ax + b over a prime field, y² + xy = x³ + ax² + b over a binary one."""

    field: PrimeField | BinaryField
    a: int
    b: int
    base: tuple[int, int]
    order: int
    cofactor: int

    @property
    def field_bytes(self) -> int:
        bits = self.field.m if isinstance(self.field, BinaryField) else self.field.p.bit_length()
        return (bits + 7) // 8

    @property
    def order_bytes(self) -> int:
        return (self.order.bit_length() + 7) // 8

    @property
    def _polynomial(self) -> int:
        assert isinstance(self.field, BinaryField)
        return sum(1 << exponent for exponent in (self.field.m, *self.field.exponents, 0))

    @property
    def _tail(self) -> tuple[int, ...]:
        assert isinstance(self.field, BinaryField)
        return (0, *self.field.exponents)

    def multiply(self, x: int, y: int) -> int:
        if isinstance(self.field, PrimeField):
            return x * y % self.field.p
        table = [0, x, x << 1, x << 1 ^ x]
        table += [(x << 2) ^ one for one in table]
        table += [(x << 3) ^ one for one in table]
        product = 0
        for at in range((y.bit_length() + 3) // 4 * 4 - 4, -4, -4):
            product = product << 4 ^ table[y >> at & 15]
        m, tail = self.field.m, self._tail
        while product >> m:  # x^m is the sum of the lower terms
            high, product = product >> m, product & ((1 << m) - 1)
            for exponent in tail:
                product ^= high << exponent
        return product

    def invert(self, x: int) -> int:
        if isinstance(self.field, PrimeField):
            return pow(x, -1, self.field.p)
        u, v, g, h = x, self._polynomial, 1, 0
        while u != 1:  # Euclid among polynomials
            shift = u.bit_length() - v.bit_length()
            if shift < 0:
                u, v, g, h, shift = v, u, h, g, -shift
            u ^= v << shift
            g ^= h << shift
        return g

    def contains(self, point: tuple[int, int]) -> bool:
        x, y = point
        square = self.multiply(x, x)
        if isinstance(self.field, PrimeField):
            return (y * y - x * square - self.a * x - self.b) % self.field.p == 0
        left = self.multiply(y, y) ^ self.multiply(x, y)
        return left == self.multiply(square, x) ^ self.multiply(self.a, square) ^ self.b

    def add(self, one: Point, other: Point) -> Point:
        if one is None or other is None:
            return one or other
        (x1, y1), (x2, y2) = one, other
        if isinstance(self.field, PrimeField):
            p = self.field.p
            if x1 == x2 and (y1 + y2) % p == 0:
                return None
            if one == other:
                slope = (3 * x1 * x1 + self.a) * self.invert(2 * y1) % p
            else:
                slope = (y2 - y1) * self.invert(x2 - x1) % p
            x3 = (slope * slope - x1 - x2) % p
            return x3, (slope * (x1 - x3) - y1) % p
        if x1 == x2 and y2 == x1 ^ y1:
            return None
        if one == other:
            slope = x1 ^ self.multiply(y1, self.invert(x1))
        else:
            slope = self.multiply(y1 ^ y2, self.invert(x1 ^ x2))
        x3 = self.multiply(slope, slope) ^ slope ^ self.a ^ (0 if one == other else x1 ^ x2)
        return x3, self.multiply(slope, x1 ^ x3) ^ x3 ^ y1

    def times(self, scalar: int, point: Point) -> Point:
        result: Point = None
        for bit in bin(scalar)[2:]:
            result = self.add(result, result)
            if bit == "1":
                result = self.add(result, point)
        return result

    def point(self, octets: bytes) -> tuple[int, int]:
        """Reads a point (X9.62, section 4.3.7), compressed or not. Raises `Malformed` off the curve."""
        size, form = self.field_bytes, octets[0]
        x = int.from_bytes(octets[1 : 1 + size])
        if form == 4 and len(octets) == 1 + 2 * size:
            point = x, int.from_bytes(octets[1 + size :])
        elif form in (2, 3) and len(octets) == 1 + size:
            point = x, self._other_coordinate(x, form & 1)
        else:
            raise Malformed(f"a point of form {form} in {len(octets)} bytes, coordinates have {size}")
        if not self.contains(point):
            raise Malformed("a point that is not on its curve")
        return point

    def _other_coordinate(self, x: int, low_bit: int) -> int:
        if isinstance(self.field, PrimeField):
            y = _square_root((x**3 + self.a * x + self.b) % self.field.p, self.field.p)
            return y if y & 1 == low_bit else self.field.p - y
        inverse = self.invert(x)
        total = x ^ self.a ^ self.multiply(self.b, self.multiply(inverse, inverse))
        z = term = total
        for _ in range((self.field.m - 1) // 2):  # the half trace solves z² + z = total
            term = self.multiply(term, term)
            term = self.multiply(term, term)
            z ^= term
        return self.multiply(x, z ^ (0 if z & 1 == low_bit else 1))

    def verifies(self, public: tuple[int, int], digest: bytes, signature: bytes) -> bool:
        """ECDSA; the signature is r and s, each as long as the order."""
        size, n = self.order_bytes, self.order
        if len(signature) != 2 * size:
            return False
        r, s = int.from_bytes(signature[:size]), int.from_bytes(signature[size:])
        if not (0 < r < n and 0 < s < n):
            return False
        e = int.from_bytes(digest) >> max(0, 8 * len(digest) - n.bit_length())
        w = pow(s, -1, n)
        point = self.add(self.times(e * w % n, self.base), self.times(r * w % n, public))
        return point is not None and point[0] % n == r


def _square_root(value: int, p: int) -> int:
    """Tonelli and Shanks; for a value without a root, the result is not a root."""
    odd, twos = p - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    other = next(z for z in range(2, 1000) if pow(z, (p - 1) // 2, p) == p - 1)
    c, t, root = pow(other, odd, p), pow(value, odd, p), pow(value, (odd + 1) // 2, p)
    while t not in (0, 1):
        power, least = t, 0
        while power != 1:
            power, least = power * power % p, least + 1
            if least == twos:
                return 0
        factor = pow(c, 1 << (twos - least - 1), p)
        twos, c = least, factor * factor % p
        t, root = t * c % p, root * factor % p
    return root


def _prime(p: int, a: int, b: int, x: int, y: int, n: int) -> Curve:
    return Curve(PrimeField(p), a, b, (x, y), n, 1)


# The numbered curves of the specification (WAP-261-WTLS, Appendix A, table 8) that are used here.
NUMBERED = {
    3: Curve(
        BinaryField(163, (3, 6, 7)),
        1,
        1,
        (
            0x02FE13C0537BBC11ACAA07D793DE4E6D5E5C94EEE8,
            0x0289070FB05D38FF58321F2E800536D538CCDAA3D9,
        ),
        0x04000000000000000000020108A2E0CC0D99F8A5EF,
        2,
    ),
    5: Curve(
        BinaryField(163, (1, 2, 8)),
        0x072546B5435234A422E0789675F432C89435DE5242,
        0x00C9517D06D5240D3CFF38C74B20B6CD4D6F9DD4D9,
        (
            0x07AF69989546103D79329FCC3D74880F33BBE803CB,
            0x01EC23211B5966ADEA1D3F87F7EA5848AEF0B7CA9F,
        ),
        0x0400000000000000000001E60FC8821CC74DAEAFC1,
        2,
    ),
    7: _prime(
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7FFFFFFF,
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7FFFFFFC,
        0x1C97BEFC54BD7A8B65ACF89F81D4D4ADC565FA45,
        0x4A96B5688EF573284664698968C38BB913CBFC82,
        0x23A628553168947D59DCC912042351377AC5FB32,
        0x0100000000000000000001F4C8F927AED3CA752257,
    ),
    10: Curve(
        BinaryField(233, (74,)),
        0,
        1,
        (
            0x017232BA853A7E731AF129F22FF4149563A419C26BF50A4C9D6EEFAD6126,
            0x01DB537DECE819B7F70F555A67C427A8CD9BF18AEB9B56E0C11056FAE6A3,
        ),
        0x8000000000000000000000000000069D5BB915BCD46EFB1AD5F173ABDF,
        4,
    ),
    11: Curve(
        BinaryField(233, (74,)),
        1,
        0x0066647EDE6C332C7F8C0923BB58213B333B20E9CE4281FE115F7D8F90AD,
        (
            0x00FAC9DFCBAC8313BB2139F1BB755FEF65BC391F8B36F8F8EB7371FD558B,
            0x01006A08A41903350678E58528BEBF8A0BEFF867A7CA36716F7E01F81052,
        ),
        0x01000000000000000000000000000013E974E72F8A6922031D2603CFE0D7,
        2,
    ),
    12: _prime(
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF000000000000000000000001,
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFE,
        0xB4050A850C04B3ABF54132565044B0B7D7BFD8BA270B39432355FFB4,
        0xB70E0CBD6BB4BF7F321390B94A03C1D356C21122343280D6115C1D21,
        0xBD376388B5F723FB4C22DFE6CD4375A05A07476444D5819985007E34,
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFF16A2E0B8F03E13DD29455C5C2A3D,
    ),
}


def curve(parameters: ParameterSpecifier) -> Curve:
    """The curve of a specifier. Raises `Malformed` if explicit parameters are no curve."""
    given = parameters.explicit
    if given is None:
        return NUMBERED[parameters.index]
    assert isinstance(given, ECParameters)
    a, b = int.from_bytes(given.a), int.from_bytes(given.b)
    found = Curve(given.field, a, b, (0, 0), given.order, given.cofactor)
    if not len(given.a) == len(given.b) == found.field_bytes:
        raise Malformed("coefficients that are not field elements")
    return Curve(given.field, a, b, found.point(given.base), given.order, given.cofactor)
