"""Read members of zip archives, including Zstandard ones, which Python's own reader does not support yet."""

import struct
import zipfile

import zstandard

ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")


def read_member(archive: zipfile.ZipFile, name: str, most: int = 4 * 1024**3) -> bytes:
    """Return the content of a member; refuse one that unpacks to more than `most` bytes."""
    member = archive.getinfo(name)
    if member.file_size > most:
        raise zipfile.BadZipFile(f"{name} unpacks to {member.file_size:,} bytes")
    if member.compress_type != ZSTANDARD:
        return archive.read(member)
    stream = archive.fp
    if stream is None:
        raise zipfile.BadZipFile("the archive is closed")
    stream.seek(member.header_offset)
    header = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    stream.seek(header[9] + header[10], 1)
    packed = stream.read(member.compress_size)
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            data = bytes(reader.read(member.file_size + 1))
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(f"{name}: {error}") from None
    if len(data) != member.file_size:
        raise zipfile.BadZipFile(f"{name}: {len(data):,} bytes instead of {member.file_size:,}")
    return data
