"""Many kernels compiled by several processes. No GPU. Run by tests/wheel.rs with a folder to work in."""

import glob
import os
import signal
import subprocess
import sys
import time

import warpcc_rtc
from warpcc_rtc import _workers

FOLDER = os.path.join(sys.argv[1], "many_processes")
# Nothing else that runs now leaves less of the machine to these tests.
os.environ["WARPCC_RUNTIME_DIR"] = os.path.join(FOLDER, "budget")


def kernels(count=14, lines=1):
    text = "".join(f'extern "C" __global__ void k{line}(int* x) {{ *x = NUMBER; }}\n' for line in range(lines))
    return [{"source": text, "name": "k0", "arch": "sm_90", "parameters": f"#define NUMBER {number}"} for number in range(count)]


def cache(name):
    return warpcc_rtc.KernelCache([os.path.join(FOLDER, name)], packs=[], remote="none")


def children():
    found = set()
    for path in glob.glob("/proc/self/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                found.update(int(one) for one in file.read().split())
        except OSError:
            pass
    return found


def compiled(name, asked, **how):
    """The results, the numbers of the processes that were started, and the remarks."""
    kept, started = cache(name), set()
    results = kept.compile_many(asked, threads=4, return_exceptions=True, progress=lambda *_: started.update(children()), **how)
    assert not children(), "a process is left behind"
    return results, started, kept.remarks


if len(sys.argv) > 2:
    # It is interrupted while it compiles.
    try:
        cache("interrupted").compile_many(kernels(40, 100), threads=4, progress=lambda *_: print(*children(), flush=True))
    except KeyboardInterrupt:
        print("interrupted", *children(), flush=True)
    raise SystemExit(0)

os.makedirs(FOLDER)

# The same images and errors, from processes and without.
asked = kernels()
asked[5] = {"source": "\n\noops", "name": "bad", "arch": "sm_90", "file": "src/bad.cu"}
asked[6] = {"source": "template<class T> __global__ void k() {}", "name": "k<int>", "arch": "compute_90", "names": ["k<long>"]}
asked[7] = {"source": "a\0b", "name": "k", "arch": "sm_90"}
alone, started, remarks = compiled("alone", asked, processes=False)
assert not started and not remarks, (started, remarks)
together, started, remarks = compiled("together", asked)
assert started and not remarks, remarks
for one, other in zip(alone, together):
    assert type(one) is type(other)
    if isinstance(one, Exception):
        texts = [str(error).replace("/together/", "/alone/") for error in (one, other)]
        assert texts[0] == texts[1], texts
    else:
        assert (one.image, one.lowered, one.log, one.key) == (other.image, other.lowered, other.log, other.key)
assert alone[5].place.startswith("src/bad.cu:3: ") and together[5].place == alone[5].place
assert together[5].options == alone[5].options and together[5].log == alone[5].log

# Nothing is started for what is there, for a few, or where sys.executable may be another program.
asked = kernels()
_, started, _ = compiled("warm", asked, processes=False)
assert not started
for name, count in (("warm", len(asked)), ("few", 2)):
    images, started, remarks = compiled(name, asked[:count])
    assert not started and not remarks and len(images) == count
real = sys.executable
assert _workers.command()[0] == real
link = os.path.join(FOLDER, "python-of-another-name")
os.symlink(os.path.realpath(real), link)
for other in ("", None, "/nowhere/python3", "/bin/sh", link):  # the last one is this Python, under a name that tells nothing
    sys.executable = other
    assert _workers.command() is None, other
sys.executable = real
sys.frozen = True
_, started, remarks = compiled("frozen", kernels(12))
assert not started and not remarks
del sys.frozen


# Killed processes cost no kernel.
def kill(*_):
    for child in children():
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass


kept = cache("killed")
images = kept.compile_many(asked, threads=4, progress=kill)
assert [image.image for image in images] == [image.image for image in compiled("warm", asked)[0]]
assert len(kept.remarks) == 1 and "signal: 9" in kept.remarks[0], kept.remarks

# The program is not run again and nothing is printed; other children get no file of ours.
program = os.path.join(FOLDER, "program.py")
with open(program, "w", encoding="utf-8") as file:
    file.write(f"""
import os, subprocess, sys, warpcc_rtc
print("once")
def files(*_):
    told = subprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout
    assert b"socket:" not in told and b"memfd" not in told, told
kernels = {kernels(16)!r}
cache = warpcc_rtc.KernelCache([{os.path.join(FOLDER, "program")!r}], packs=[], remote="none")
images = cache.compile_many(kernels, threads=4, progress=files)
assert not cache.remarks, cache.remarks
""")
done = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
assert (done.returncode, done.stdout, done.stderr) == (0, b"once\n", b""), done

# Ctrl-C goes to every process of the group, and only the program hears it.
command = [sys.executable, __file__, sys.argv[1], "interrupted"]
waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
waiting.stdout.readline()
os.killpg(waiting.pid, signal.SIGINT)
told, said = waiting.communicate()
assert waiting.returncode == 0 and told.splitlines()[-1] == b"interrupted" and not said, (told, said)

# So does the end of the program by SIGKILL: its processes notice.
waiting = subprocess.Popen(command, stdout=subprocess.PIPE)
begun = set()
while not begun:
    line = waiting.stdout.readline()
    assert line, "it ended before it had started a process"
    begun.update(line.split())
waiting.kill()
waiting.wait()
deadline = time.monotonic() + 60


def alive(process):
    try:
        with open(f"/proc/{int(process)}/stat", encoding="ascii", errors="replace") as file:
            return ") Z " not in file.read()
    except OSError:
        return False


while any(alive(process) for process in begun):
    assert time.monotonic() < deadline, begun
    time.sleep(0.01)
