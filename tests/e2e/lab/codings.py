"""br and zstd, by the libraries the gateway decodes them with: Python 3.11 has neither."""
import ctypes
import ctypes.util

BROTLI_ENC, BROTLI_DEC, ZSTD = (ctypes.CDLL(ctypes.util.find_library(name)) for name in ("brotlienc", "brotlidec", "zstd"))
ZSTD.ZSTD_compress.restype = ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
SIZE = ctypes.c_size_t


def brotli(data):
    size = SIZE(len(data) + 1024)
    out = ctypes.create_string_buffer(size.value)
    assert BROTLI_ENC.BrotliEncoderCompress(5, 22, 0, SIZE(len(data)), data, ctypes.byref(size), out)
    return out.raw[:size.value]


def zstd(data):
    out = ctypes.create_string_buffer(len(data) + 1024)
    n = ZSTD.ZSTD_compress(out, SIZE(len(out)), data, SIZE(len(data)), 3)
    return out.raw[:n]


def plain(data, room=1 << 20):
    """What a whole body decodes to in either; b"" where it does not."""
    out, size = ctypes.create_string_buffer(room), SIZE(room)
    if BROTLI_DEC.BrotliDecoderDecompress(SIZE(len(data)), data, ctypes.byref(size), out) == 1:
        return out.raw[:size.value]
    n = ZSTD.ZSTD_decompress(out, SIZE(room), data, SIZE(len(data)))
    return out.raw[:n] if n <= room else b""
