"""What the kernel's own file systems do, asked of a directory: python3 posix.py DIRECTORY [-o strictatime]. Root only."""
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import time

directory = sys.argv[1]
options = sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
O_NOATIME = 0o1000000
STRANGER, MEMBER = ["--regid=1001", "--clear-groups"], ["--regid=1001", "--groups=50"]


def path(name):
    return os.path.join(directory, name)


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found} instead of {wanted}")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def fresh(name, mode, uid=0, gid=50):
    """A file with that mode and some content."""
    with open(path(name), "wb") as file:
        file.write(b"x" * 8192)
    os.chown(path(name), uid, gid)
    os.chmod(path(name), mode)
    return path(name)


def mode_of(file):
    return oct(os.stat(file).st_mode & 0o7777)


def set_id_bits():
    write = "import os,sys; fd = os.open(sys.argv[1], os.O_RDWR); "
    changes = {
        "write": "os.pwrite(fd, b'y', 0)",
        "truncate": "os.ftruncate(fd, 10)",
        "fallocate": "os.posix_fallocate(fd, 0, 20000)",
        "copy_file_range": "os.copy_file_range(fd, fd, 4096, 4096, 0)",
    }
    as_user = {"stranger": STRANGER, "member": MEMBER}
    for what, change in changes.items():
        for before, who, after in [
            (0o6666, "stranger", 0o666), (0o6666, "member", 0o2666),
            (0o6777, "stranger", 0o777), (0o6777, "member", 0o777), (0o2666, "stranger", 0o666),
        ]:
            file = fresh("set-id", before)
            run("setpriv", "--reuid=1001", *as_user[who], sys.executable, "-c", write + change, file)
            expect(f"{oct(before)} after {what} by a {who}", mode_of(file), oct(after))
        file = fresh("set-id", 0o6777)
        run(sys.executable, "-c", write + change, file)
        expect(f"06777 after {what} by root", mode_of(file), oct(0o6777))
    # Root's write takes the capabilities and nothing else; a chown to the present owner takes the
    # bits.
    file = fresh("armed", 0o4777)
    os.setxattr(file, "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    run(sys.executable, "-c", write + changes["write"], file)
    expect("capabilities after a write", "security.capability" in os.listxattr(file), False)
    expect("04777 with capabilities after a write by root", mode_of(file), oct(0o4777))
    os.chown(file, -1, -1)
    expect("04777 after chown(-1, -1)", mode_of(file), oct(0o777))
    # An access list sets the mode, and a set-group bit stays if its group is one of the caller's.
    for who, after in [(STRANGER, 0o777), (MEMBER, 0o2777)]:
        file = fresh("list", 0o2755, uid=1001)
        run("setpriv", "--reuid=1001", *who, "setfacl", "-m", "u::rwx,g::rwx,o::rwx", file)
        expect(f"set-group bit after setfacl with {who}", mode_of(file), oct(after))


def access_times():
    file = fresh("times", 0o644)

    def read(flags):
        fd = os.open(file, os.O_RDONLY | flags)
        os.pread(fd, 10, 0)
        os.close(fd)
        time.sleep(0.02)
        return os.stat(file).st_atime_ns

    os.utime(file, (1, 1))
    is_strict = "strictatime" in options
    expect("access time after O_NOATIME", read(O_NOATIME), 1_000_000_000)
    if is_strict:
        one, two = read(0), read(0)
        expect("each of two reads renews the time", (one > 1_000_000_000, two > one), (True, True))
        expect("access time after O_NOATIME", read(O_NOATIME), two)


def attributes():
    file = fresh("attributes", 0o644, uid=1001, gid=1001)
    os.setxattr(file, "trusted.secret", b"1")
    os.setxattr(file, "user.open", b"2")
    expect("what root lists", sorted(os.listxattr(file)), ["trusted.secret", "user.open"])
    names = run("setpriv", "--reuid=1001", "--regid=1001", "--clear-groups", sys.executable, "-c",
                "import os,sys; print(os.listxattr(sys.argv[1]))", file)
    expect("what a user lists", names.strip(), "['user.open']")
    if shutil.which("rsync"):
        os.mkdir(path("copies"))
        os.chown(path("copies"), 1001, 1001)
        run("setpriv", "--reuid=1001", "--regid=1001", "--clear-groups", "rsync", "-aX", file, path("copies"))
    for name in ["user.", "trusted.", "security."]:
        try:
            os.setxattr(file, name, b"1")
            expect(name, "set", "refused")
        except OSError as error:
            expect(name, errno.errorcode[error.errno], "EINVAL")


set_id_bits()
access_times()
attributes()
