"""Fills a directory of a mounted volume with files of some sizes, or looks at what became of them.

full.py fill ROOT SIZES LOG     files until ENOSPC; LOG has what was accepted of each
full.py verify ROOT LOG         every accepted byte is there
full.py again ROOT LOG          the files of LOG once more, in another place
full.py empty ROOT LOG ORDER    removes them: made, listed or drawn
"""
import errno, os, random, sys

def content(number, length):
    return (b"%08d" % number * (length // 8 + 1))[:length]

def read_log(log):
    return [tuple(map(int, line.split())) for line in open(log)]

def fill(root, sizes, log):
    draw, made, synced, failed = random.Random(1), [], 0, []
    number = 0
    try:
        while True:
            length, taken = draw.choice(sizes), 0
            name = f"{root}/f{number}"
            file = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
            try:
                while taken < length:
                    taken += os.write(file, content(number, length)[taken:taken + 131072])
            finally:
                # Whatever happens, what write() took of it counts as accepted.
                made.append((number, taken))
                try: os.close(file)
                except OSError as error: failed.append(f"close of {name}: {error}")
            number += 1
    except OSError as error:
        if error.errno != errno.ENOSPC: raise
    for index in sorted(draw.sample(range(len(made)), min(50, len(made)))):
        file = os.open(f"{root}/f{made[index][0]}", os.O_RDONLY)
        try: os.fsync(file)
        except OSError as error: failed.append(f"fsync of f{made[index][0]}, {made[index][1]} bytes: {error}")
        os.close(file)
    with open(log, "w") as out:
        for number, taken in made: print(number, taken, file=out)
    if failed: sys.exit(f"{len(failed)} calls on a full volume failed for what write() had taken: {failed[:3]}")
    print(len(made))

def verify(root, log):
    wrong = []
    made = read_log(log)
    for number, taken in made:
        try: found = open(f"{root}/f{number}", "rb").read()
        except OSError as error: found = error
        if found != content(number, taken):
            wrong.append(f"f{number} of {taken} bytes: {found if isinstance(found, OSError) else f'{len(found)} bytes, or others'}")
    if wrong: sys.exit(f"{len(wrong)} of {len(made)} files are wrong: {wrong[:3]}")
    names = len(os.listdir(root))
    if names != len(made): sys.exit(f"{names} names for {len(made)} files")

def again(root, log):
    for number, taken in read_log(log):
        with open(f"{root}/f{number}", "wb", buffering=0) as file: file.write(content(number, taken))

def empty(root, log, order):
    names = [f"f{number}" for number, _ in read_log(log)]
    if order == "listed": names = os.listdir(root)
    if order == "drawn": random.Random(2).shuffle(names)
    for index, name in enumerate(names):
        try: os.unlink(f"{root}/{name}")
        except OSError as error: sys.exit(f"unlink {index} of {len(names)} in the order '{order}': {error}")

command, root = sys.argv[1:3]
if command == "fill": fill(root, [int(size) for size in sys.argv[3].split(",")], sys.argv[4])
elif command == "verify": verify(root, sys.argv[3])
elif command == "again": again(root, sys.argv[3])
else: empty(root, sys.argv[3], sys.argv[4])
