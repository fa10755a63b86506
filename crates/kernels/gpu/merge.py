"""Makes one result of the parts that run.sh left in a folder: python3 merge.py FOLDER docs/bench/rtc-h200.json

A file `runs.txt` in the folder says, where it was not one run, what came from which.
"""

import json
import os
import sys

folder, target = sys.argv[1:]


def read(name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file) if name.endswith(".json") else file.read()


values, speed, peers, python, start = (read(f"{name}.json") for name in ("values", "speed", "peers", "python", "start"))
whole = dict(speed)
whole["runs"] = (read("runs.txt") or "one").splitlines()
whole["groups"] = {**values["groups"], **speed["groups"]}
whole["peers"] = peers
whole["python"] = python
whole["start"] = start
cpp = (read("cpp.txt") or "").splitlines()
whole["cpp"] = [json.loads(line) for line in cpp if line.startswith("{")] + [line for line in cpp if " checked, " in line]
lines = (read("sanitizer.txt") or "").splitlines()
whole["compute_sanitizer"] = [line.lstrip("= ") for line in lines if "SUMMARY" in line]
with open(target, "w", encoding="utf-8") as file:
    json.dump(whole, file, indent=1)
    file.write("\n")
