"""A stand-in for GitHub's cache service, as far as OpenDAL asks it: the second version of the protocol, in memory.

Three calls of github.actions.results.api.v1.CacheService by Twirp with protobuf (messages as in the crate `ghac`), and
addresses of blobs that take Azure's PUT, as the real ones do. A name that is taken is refused with 409, as GitHub does it:
"cache entry with the same key, version, and scope already exists". What is not finalized is not found. Nothing is evicted,
and a token is not looked into, only demanded.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, urlsplit

ENTRIES, BLOCKS, BLOBS, READY, LOCK = {}, {}, {}, set(), Lock()


def fields(message):
    """The strings of a protobuf message by their numbers; numbers are skipped."""
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
        length = varint()
        if tag & 7 == 2:
            found[tag >> 3] = message[at : at + length].decode()
            at += length
    return found


def string(number, text):
    data = text.encode()
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_POST(self):
        asked = fields(self.body())
        if self.headers.get("Authorization") != "Bearer a-token":
            return self.answer(401)
        call = self.path.rsplit("/", 1)[1]
        if call == "GetCacheEntryDownloadURL":
            entry = asked.get(2), asked.get(4)
            with LOCK:
                number = ENTRIES.get(entry) if entry in READY else None
            if number is None:
                return self.answer(200)  # ok is false.
            url = f"http://{self.headers['Host']}/cache/{number}?sig=x"
            return self.answer(200, b"\x08\x01" + string(2, url) + string(3, "x"))
        entry = asked.get(2), asked.get(4 if call.startswith("Finalize") else 3)
        with LOCK:
            if call == "CreateCacheEntry":
                if entry in ENTRIES:
                    text = b'{"code":"already_exists","msg":"cache entry with the same key, version, and scope already exists"}'
                    return self.answer(409, text)
                ENTRIES[entry] = number = len(ENTRIES)
                url = f"http://{self.headers['Host']}/cache/{number}?sig=x"
                return self.answer(200, b"\x08\x01" + string(2, url))
            assert call == "FinalizeCacheEntryUpload", call
            READY.add(entry)
        return self.answer(200, b"\x08\x01")

    def do_PUT(self):
        body, url = self.body(), urlsplit(self.path)
        query, number = parse_qs(url.query), int(url.path.rsplit("/", 1)[1])
        with LOCK:
            what = query.get("comp", [""])[0]
            if what == "block":
                BLOCKS[number, query["blockid"][0]] = body
            elif what == "blocklist":
                names = body.decode().split("<Latest>")[1:]
                BLOBS[number] = b"".join(BLOCKS.pop((number, name.split("<")[0])) for name in names)
            else:
                BLOBS[number] = body
        self.answer(201)

    def do_GET(self):
        with LOCK:
            blob = BLOBS[int(urlsplit(self.path).path.rsplit("/", 1)[1])]
        span = self.headers.get("Range")
        if not span:
            return self.answer(200, blob)
        first, last = span.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last or len(blob)), len(blob) - 1)
        part = blob[first : last + 1]
        self.answer(206, part, Content_Range=f"bytes {first}-{last}/{len(blob)}")


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
