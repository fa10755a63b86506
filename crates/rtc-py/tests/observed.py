"""What a program is told about its requests: events, traces, why a kernel missed, sources for debuggers. No GPU. Run by
tests/wheel.rs with a folder to work in."""

import json
import os
import subprocess
import sys
import time

import warpcc_rtc

FOLDER = os.path.join(sys.argv[1], "observed")
SOURCE = "template<class T> __global__ void k(T* x) {\n  *x = N;\n}\n"
KERNEL = {"source": SOURCE, "name": "k<int>", "arch": "sm_90", "parameters": "#define N 1"}


def cache(name):
    return warpcc_rtc.KernelCache([os.path.join(FOLDER, name)], packs=[], remote="none")


def each_request_is_an_event():
    told = []
    kept, begun = cache("events"), time.time()
    assert kept.on_event is None
    kept.on_event = told.append
    image = kept.compile(**KERNEL)
    kept.compile(**KERNEL)
    try:
        kept.compile("oops", "bad", "sm_90")
    except warpcc_rtc.CompileError:
        pass
    many = [{**KERNEL, "parameters": f"#define N {number}"} for number in range(1, 5)]
    kept.compile_many(many)
    outcomes = [event.outcome for event in told]
    assert outcomes[:3] == ["made", "memory", "failed"] and sorted(outcomes[3:]) == ["made", "made", "made", "memory"], outcomes
    first, _, failed = told[:3]
    assert (first.name, first.key, first.error) == ("k<int>", image.key, None), first
    assert failed.name == "bad" and "oops" in failed.error and len(failed.key) == 64, failed
    assert 0 < first.seconds < 60 and begun - 1 < first.started < time.time(), first
    assert repr(first).startswith("<warpcc_rtc.Event k<int>, made, "), first
    # It may use the cache; what it raises is no error of the caller's.
    raised = []
    sys.unraisablehook = raised.append

    def awkward(event):
        assert kept.counts["made"] >= 4
        kept.on_event = None
        raise KeyError(event.name)

    kept.on_event = awkward
    kept.compile(**KERNEL)
    sys.unraisablehook = sys.__unraisablehook__
    assert [each.exc_type for each in raised] == [KeyError] and kept.on_event is None
    try:
        kept.on_event = 7
        raise SystemExit("it was not refused")
    except TypeError as error:
        assert "on_event" in str(error), error


def processes_write_one_trace():
    path = os.path.join(FOLDER, "trace.json")
    program = f"""import sys, warpcc_rtc
cache = warpcc_rtc.KernelCache([{FOLDER!r} + "/traced"], packs=[], remote="none")
cache.compile_many([{{**{KERNEL!r}, "parameters": f"#define N {{number}}"}} for number in range(6)])
assert not cache.remarks, cache.remarks
"""
    environment = {**os.environ, "WARPCC_RTC_TRACE": path}
    started = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(3)]
    assert [each.wait() for each in started] == [0, 0, 0]
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in slices} == {each.pid for each in started}, events
    assert len(slices) == 18 and sum(event["cat"] == "made" for event in slices) == 6, slices
    assert {event["cat"] for event in slices} <= {"made", "disk"}
    assert all(event["dur"] > 0 and len(event["args"]["key"]) == 64 for event in slices)
    named = [event for event in events if event["ph"] == "M"]
    assert {event["pid"] for event in named} == {each.pid for each in started} and len(named) == 3, named


def why_says_what_differs():
    kept = cache("why")
    assert kept.why(**KERNEL).status == "never_seen"
    kept.compile(**KERNEL)
    assert (kept.why(**KERNEL).status, kept.why(**KERNEL).changes) == ("stored", [])
    other = kept.why(**{**KERNEL, "source": SOURCE.replace("= N", "= N + 1")}, options=["-DM"])
    assert other.status == "differs" and ("source", "…", "…", 2) in other.changes, other.changes
    assert ("option", None, "-DM", None) in other.changes and "source, line 2" in repr(other), other
    unknown = kept.why('#define P "../p.h"\n#include P\n', "k", "sm_90", include=[FOLDER])
    assert unknown.status == "not_stored" and "../p.h" in unknown.reason, unknown
    try:
        kept.why(SOURCE, "k", "sm_90", nmaes=[])
        raise SystemExit("it was not refused")
    except warpcc_rtc.ArgumentError:
        pass


os.makedirs(FOLDER)
for test in (each_request_is_an_event, processes_write_one_trace, why_says_what_differs):
    print(test.__name__, flush=True)
    test()
