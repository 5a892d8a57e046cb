"""Programs of the trial many-at-once: many-at-once.py ROOT storm|read|verify NUMBER SECONDS.

Every file says in each of its blocks which version of it the block is of, and ends with a checksum.
A storm writes a new version beside the old and renames it over, moves, links and removes files, in
directories that all share; it knows its own files and looks after them. A reader takes any file and
must find one version, whole.
"""
import ctypes
import errno
import hashlib
import os
import random
import sys
import time

root, role, number, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
draw = random.Random(number)
shared = [os.path.join(root, f"shared{n}") for n in range(3)]
gone = (errno.ENOENT, errno.ESTALE)


def link(old, new):
    """os.link, once more if the kernel refuses it unasked: docs/semantics.md says why it may."""
    try:
        os.link(old, new)
    except FileNotFoundError:
        # The server says how many names there are, and then the kernel knows.
        if not refreshed_links(old):
            raise
        os.link(old, new)


def refreshed_links(path):
    """How many names the server knows of a file, past what the kernel remembers (statx)."""
    at_fdcwd, force_sync, links = -100, 0x2000, 4
    found = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).statx(at_fdcwd, path.encode(), force_sync, links, found):
        return 0
    return int.from_bytes(found.raw[16:20], sys.byteorder)


def content(version):
    body = (f"{version:032d}".encode() * draw.choice([1, 8, 200, 3000]))
    return body + hashlib.sha256(body).digest()


def version_of(found, path):
    body, sum_of = found[:-32], found[-32:]
    if len(found) < 64 or hashlib.sha256(body).digest() != sum_of or body != body[:32] * (len(body) // 32):
        sys.exit(f"{path}: {len(found)} bytes are no version of it")
    return int(body[:32])


def read(path):
    with open(path, "rb") as file:
        return file.read()


def storm():
    mine, steps, end = {}, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        steps += 1
        kind = draw.randrange(8)
        name = draw.choice(list(mine)) if mine else None
        path = os.path.join(draw.choice(shared), f"{number}-{steps}")
        if kind < 2 or name is None:
            with open(path, "xb") as file:
                file.write(content(steps))
            # Only whole files have names that readers look at.
            os.rename(path, path + ".whole")
            mine[path + ".whole"] = steps
        elif kind < 4:
            with open(path, "xb") as file:
                file.write(content(steps))
                if draw.random() < .2:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(path, name)
            mine[name] = steps
        elif kind == 4:
            os.rename(name, path + ".whole")
            mine[path + ".whole"] = mine.pop(name)
        elif kind == 5:
            link(name, path + ".whole")
            os.unlink(name)
            mine[path + ".whole"] = mine.pop(name)
        elif kind == 6:
            os.unlink(name)
            del mine[name]
            if os.path.exists(name):
                sys.exit(f"{name} is still there")
        elif version_of(read(name), name) != mine[name]:
            sys.exit(f"{name} is not version {mine[name]}")
        if len(mine) > 100:
            for name in draw.sample(list(mine), 50):
                os.unlink(name)
                del mine[name]
    for name, version in mine.items():
        if version_of(read(name), name) != version:
            sys.exit(f"{name} is not version {version}")
    listed = {os.path.join(one, name) for one in shared for name in os.listdir(one) if name.startswith(f"{number}-")}
    if listed != set(mine):
        sys.exit(f"names differ: {sorted(listed ^ set(mine))[:10]}")
    return steps


def readers_turn():
    """Looks at every file that has a name now; how many there were."""
    looked = 0
    for one in shared:
        names = [name for name in os.listdir(one) if name.endswith(".whole")]
        for name in names:
            path = os.path.join(one, name)
            try:
                version_of(read(path), path)
            except OSError as error:
                # Another program was faster.
                if error.errno not in gone:
                    raise
            looked += 1
    return looked


def reader():
    steps, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        steps += readers_turn()
    return steps


for one in shared:
    os.makedirs(one, exist_ok=True)
print({"storm": storm, "read": reader, "verify": readers_turn}[role]())
