"""Handles of files: `handles.py keep DIRECTORY FILE` makes some things and keeps their handles, `handles.py open ...` opens them."""
import ctypes
import os
import pickle
import sys

libc = ctypes.CDLL(None, use_errno=True)
O_PATH = 0o10000000


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]


what, directory, kept = sys.argv[1:]
if what == "keep":
    os.makedirs(os.path.join(directory, "d/e"))
    with open(os.path.join(directory, "d/f"), "w") as file:
        file.write("content")
    os.symlink("f", os.path.join(directory, "d/l"))
    with open(os.path.join(directory, "d/gone"), "w"):
        pass
    handles = {}
    for name in ["d", "d/e", "d/f", "d/l", "d/gone"]:
        handle = Handle(128)
        mount = ctypes.c_int()
        path = os.path.join(directory, name).encode()
        assert libc.name_to_handle_at(-100, path, ctypes.byref(handle), ctypes.byref(mount), 0) == 0, name
        handles[name] = (os.stat(path, follow_symlinks=False).st_ino, bytes(handle))
    os.unlink(os.path.join(directory, "d/gone"))
    pickle.dump(handles, open(kept, "wb"))
else:
    mount = os.open(directory, os.O_RDONLY)
    for name, (number, handle) in pickle.load(open(kept, "rb")).items():
        fd = libc.open_by_handle_at(mount, ctypes.byref(Handle.from_buffer_copy(handle)), O_PATH if name == "d/l" else os.O_RDONLY)
        if name == "d/gone":
            assert fd < 0 and ctypes.get_errno() == 116, f"{name}: {fd}, {os.strerror(ctypes.get_errno())}"
            continue
        assert fd >= 0, f"{name}: {os.strerror(ctypes.get_errno())}"
        assert os.fstat(fd).st_ino == number, name
        if name == "d/f":
            assert os.read(fd, 100) == b"content", name
        os.close(fd)
