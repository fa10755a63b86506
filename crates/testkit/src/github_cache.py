"""A stand-in for GitHub's cache service, the second version of the protocol, with the limits of the real one.

Three calls of github.actions.results.api.v1.CacheService by Twirp with protobuf, and signed addresses of blobs that take Azure's
PUT and GET with ranges. As measured at the real one: an exact name is looked for first, then the newest finished entry whose
name begins so; a name is taken once, also where it was never finished; a version has 64 characters; the size that is told at
the end must be right; creating, and nothing else, is limited, and refused with 429 and Retry-After; signed addresses run out.
Above the quota the entries that were used longest ago go.

GET /control gives the numbers of requests as JSON, POST /control changes what STATE has, or adds an entry as anybody could who
may write: its "plant", "version" and "hex". Blobs are files, for tests to spoil.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock
from urllib.parse import parse_qs, urlsplit

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]
STATE = {
    "limit": 200,  # New entries in a window.
    "window": 60,  # Seconds of it.
    "retry_after": 1,
    "quota": 10 << 30,
    "signed_for": 600,
    "ranges": True,
    "calls_fail": False,  # 500 to each call.
    "blobs_fail": False,  # The same to each signed address.
    "failing_gets": [],  # The same to these, by number.
    "read_only": False,  # As for a pull request of a fork.
    "blobs_wait": 0,  # Seconds before each blob.
}
COUNTS = {"find": 0, "create": 0, "finalize": 0, "put": 0, "get": 0, "limited": 0}
ENTRIES, CREATED, NUMBERS, LOCK = {}, [], count(1), Lock()


class Entry:
    def __init__(self, number):
        self.number, self.finished, self.used = number, None, time.monotonic()

    def path(self):
        return os.path.join(FOLDER, str(self.number))

    def size(self):
        return os.path.getsize(self.path()) if os.path.exists(self.path()) else -1

    def url(self, host):
        until = time.time() + STATE["signed_for"]
        return f"http://{host}/cache/{self.number}?until={until}&sig=secret"


def fields(message):
    """The values of a protobuf message by their numbers; the last one of each."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            found[tag >> 3] = message[at : at + value].decode()
            at += value
        else:
            found[tag >> 3] = value
    return found


def string(number, text):
    data, length = text.encode(), len(text.encode())
    head = [number << 3 | 2]
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + data


def evict():
    """The entries that were used longest ago go until the rest fits."""
    there = sorted((e for e in ENTRIES.items() if e[1].finished), key=lambda e: e[1].used)
    total = sum(entry.size() for _, entry in there)
    for name, entry in there:
        if total <= STATE["quota"]:
            break
        total -= entry.size()
        os.remove(entry.path())
        del ENTRIES[name]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two packets: the second would wait 40 ms for the client to acknowledge the first.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code, text, **headers):
        self.answer(status, json.dumps({"code": code, "msg": text}).encode(), **headers)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with LOCK:
            if self.path == "/control":
                asked = json.loads(body)
                if "plant" in asked:
                    entry = ENTRIES["main", asked["plant"], asked["version"]] = Entry(next(NUMBERS))
                    with open(entry.path(), "wb") as blob:
                        blob.write(bytes.fromhex(asked["hex"]))
                    entry.finished = time.monotonic()
                    return self.answer(200)
                STATE.update(asked)
                return self.answer(200)
            # A branch sees its own entries first, then those of the main branch.
            token = self.headers.get("Authorization", "")
            scopes = {"Bearer a-token": ["main"], "Bearer branch-token": ["branch", "main"]}
            self.scopes = scopes.get(token)
            if not self.scopes:
                return self.refuse(401, "unauthenticated", "no token")
            call = self.path.removeprefix("/twirp/github.actions.results.api.v1.CacheService/")
            work = {
                "GetCacheEntryDownloadURL": self.find,
                "CreateCacheEntry": self.create,
                "FinalizeCacheEntryUpload": self.finalize,
            }.get(call)
            if not work:
                return self.refuse(404, "bad_route", "no such call")
            work(fields(body))

    def fails(self, kind, version):
        COUNTS[kind] += 1
        if STATE["calls_fail"]:
            self.refuse(500, "internal", "it fails for a-token")
        elif len(version) != 64:
            self.refuse(400, "invalid_argument", "version must be between 1 and 64 characters")
        else:
            return False
        return True

    def find(self, asked):
        name, version = asked.get(2), asked.get(4, "")
        if self.fails("find", version):
            return
        for scope in self.scopes:
            there = {k: e for (s, k, v), e in ENTRIES.items() if (s, v) == (scope, version) and e.finished}
            begins = [key for key in there if key.startswith(name)]
            if begins:
                break
        else:
            return self.answer(200)  # ok is false.
        found = name if name in there else max(begins, key=lambda key: there[key].finished)
        there[found].used = time.monotonic()
        url = there[found].url(self.headers["Host"])
        self.answer(200, b"\x08\x01" + string(2, url) + string(3, found))

    def create(self, asked):
        entry = self.scopes[0], asked.get(2), asked.get(3, "")
        if self.fails("create", entry[2]):
            return
        if STATE["read_only"]:
            return self.refuse(403, "permission_denied", "the token has no scope to write")
        now = time.monotonic()
        CREATED[:] = [at for at in CREATED if at > now - STATE["window"]]
        if len(CREATED) >= STATE["limit"]:
            COUNTS["limited"] += 1
            return self.refuse(429, "resource_exhausted", "rate limit", Retry_After=STATE["retry_after"])
        CREATED.append(now)
        if entry in ENTRIES:
            return self.refuse(409, "already_exists", "cache entry with the same key, version, and scope already exists")
        ENTRIES[entry] = Entry(next(NUMBERS))
        url = ENTRIES[entry].url(self.headers["Host"])
        self.answer(200, b"\x08\x01" + string(2, url))

    def finalize(self, asked):
        entry = self.scopes[0], asked.get(2), asked.get(4, "")
        if self.fails("finalize", entry[2]):
            return
        found = ENTRIES.get(entry)
        if not found or found.size() != asked.get(3) or found.size() < 1:
            return self.refuse(404, "not_found", "no upload of this size")
        found.finished = time.monotonic()
        evict()
        self.answer(200, b"\x08\x01\x10\x07")

    def signed(self, kind):
        """The path of the blob that a signed address is for."""
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        with LOCK:
            COUNTS[kind] += 1
            number = COUNTS[kind]
        time.sleep(STATE["blobs_wait"])
        failing = kind == "get" and number in STATE["failing_gets"]
        if STATE["blobs_fail"] or failing:
            self.answer(500)
        elif float(query["until"][0]) < time.time() or query["sig"] != ["secret"]:
            self.answer(403, b"<Code>AuthenticationFailed</Code>")
        else:
            return os.path.join(FOLDER, os.path.basename(url.path))
        return None

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.signed("put")
        if path:
            assert self.headers["x-ms-blob-type"] == "BlockBlob"
            with open(path, "wb") as blob:
                blob.write(body)
            self.answer(201)

    def do_GET(self):
        if self.path == "/control":
            with LOCK:
                return self.answer(200, json.dumps(COUNTS).encode())
        path = self.signed("get")
        if not path:
            return
        if not os.path.exists(path):
            return self.answer(404)
        with open(path, "rb") as blob:
            data = blob.read()
        span = self.headers.get("Range")
        if not span or not STATE["ranges"]:
            return self.answer(200, data)
        first, last = map(int, span.removeprefix("bytes=").split("-"))
        if first >= len(data):
            return self.answer(416)
        part = data[first : last + 1]
        last = first + len(part) - 1
        self.answer(206, part, Content_Range=f"bytes {first}-{last}/{len(data)}")


os.makedirs(FOLDER, exist_ok=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
