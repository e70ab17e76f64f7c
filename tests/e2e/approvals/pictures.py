"""Small pictures with words in them, drawn here; and PNGs, read here."""
import struct
import zlib

SCALE = 4  # pixels of a dot
# Five dots across, seven down, a number a row.
FONT = {
    " ": (0, 0, 0, 0, 0, 0, 0), "0": (14, 17, 19, 21, 25, 17, 14), "1": (4, 12, 4, 4, 4, 4, 14), "9": (14, 17, 17, 15, 1, 2, 12),
    "A": (14, 17, 17, 31, 17, 17, 17), "B": (30, 17, 17, 30, 17, 17, 30), "D": (30, 17, 17, 17, 17, 17, 30),
    "E": (31, 16, 16, 30, 16, 16, 31), "G": (14, 17, 16, 23, 17, 17, 15), "I": (14, 4, 4, 4, 4, 4, 14),
    "L": (16, 16, 16, 16, 16, 16, 31), "M": (17, 27, 21, 21, 17, 17, 17), "N": (17, 25, 21, 19, 17, 17, 17),
    "O": (14, 17, 17, 17, 17, 17, 14), "P": (30, 17, 17, 30, 16, 16, 16), "R": (30, 17, 17, 30, 20, 18, 17),
    "S": (15, 16, 16, 14, 1, 1, 30), "T": (31, 4, 4, 4, 4, 4, 4), "U": (17, 17, 17, 17, 17, 17, 14), "Y": (17, 17, 10, 4, 4, 4, 4),
}
INK, PAPER = (20, 20, 120), (250, 250, 240)


def drawn(words):
    """Rows of pixels: these words, with a margin."""
    dots = [[0] * (6 * len(words) + 1)]
    for row in range(7):
        line = [0]
        for letter in words:
            line += [FONT[letter][row] >> (4 - i) & 1 for i in range(5)] + [0]
        dots.append(line)
    dots.append(dots[0])
    return [[INK if dot else PAPER for dot in line for _ in range(SCALE)] for line in dots for _ in range(SCALE)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(rows, frames=1):
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    moves = chunk(b"acTL", struct.pack(">II", frames, 0)) if frames > 1 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)) + moves +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def paeth(a, b, c):
    p = a + b - c
    near = min(abs(p - a), abs(p - b), abs(p - c))
    return a if abs(p - a) == near else b if abs(p - b) == near else c


def unfiltered(kind, line, above, size):
    """One row of bytes, of which each stands for its difference from others."""
    for i, value in enumerate(line):
        left, up = line[i - size] if i >= size else 0, above[i]
        corner = above[i - size] if i >= size else 0
        line[i] = value + (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind] & 0xff
    return line


def read(data):
    """A PNG's rows of pixels, red, green and blue; it must be of eight bits and have no palette."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:16]
    at, packed, names = 8, b"", []
    while at < len(data):
        n, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        assert struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0] == zlib.crc32(name + body), name
        names.append(name)
        if name == b"IHDR":
            width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", body)
        packed += body if name == b"IDAT" else b""
        at += 12 + n
    assert set(names) <= {b"IHDR", b"IDAT", b"IEND"} and depth == 8 and colour in (2, 6) and rest == [0, 0, 0], (names, depth, colour)
    size, raw, rows, above = 3 if colour == 2 else 4, zlib.decompress(packed), [], None
    for y in range(height):
        start = y * (width * size + 1)
        line = bytearray(raw[start + 1:start + 1 + width * size])
        above = unfiltered(raw[start], line, above or bytearray(len(line)), size)
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), size)])
    return rows
