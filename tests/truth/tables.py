"""Tables of texts from files that somebody else wrote.

    rows, columns = read_table(path)     # [{column: text}]; Unreadable says what is wrong with the file

Comma, semicolon or tab between fields; gzip or not, whatever the name says; with or without a byte order mark; rows that are too short have
empty fields, what is too much is left out.
"""

import csv
import gzip
import io
import zlib

MOST_BYTES = 1 << 30


class Unreadable(Exception):
    pass


def read_text(path):
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES)
        if data[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MOST_BYTES)
    except (OSError, EOFError, zlib.error) as reason:
        raise Unreadable(f"{path}: {getattr(reason, 'strerror', None) or reason}") from None
    return data.decode("utf-8-sig", errors="replace").replace("\0", "")


def read_table(path):
    text = read_text(path)
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    csv.field_size_limit(MOST_BYTES)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        reader.fieldnames = [(name or "").strip().lower() for name in reader.fieldnames or []]
        return [{name: (value or "").strip() for name, value in row.items() if name} for row in reader], reader.fieldnames
    except csv.Error as reason:
        raise Unreadable(f"{path}: {reason}") from None
