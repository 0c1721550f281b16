# SPDX-License-Identifier: Apache-2.0
"""A filter of the content sees the sizes of what is read. mod_include passes on what it has read so far, so these
sizes decide whether a response has a Content-Length: as in stock."""

import re
import subprocess

import pytest

import rawhttp
import tree

SIZES = (8_000, 16_000, 16_001, 16_384, 16_385, 40_000, 65_536, 65_537, 300_000, 5_000_000)
LINE = b"x" * 63 + b"\n"
ROUNDS = 2              # the second may come from a kept mapping
WHERE = {"mapped": "", "read": "EnableMMAP Off", "buffer": "EnableMMAP Off\nReadBufferSize 20000",
         "sendfile": "EnableSendfile On", "both": "EnableMMAP Off\nEnableSendfile On"}


def config(root):
    where = "".join(f"<Directory {root}/{name}>\n{lines}\n</Directory>\n" for name, lines in WHERE.items())
    return (f"AddType text/html .shtml\n<Directory {root}>\nOptions +Includes\nSetOutputFilter INCLUDES\n"
            f"</Directory>\n{where}")


@pytest.fixture(scope="module")
def root(base):
    root = base / "filtered"
    for where in WHERE:
        for size in SIZES:
            tree.put(root / where / f"{size}.shtml", (LINE * (size // len(LINE) + 1))[:size])
    return root


@pytest.fixture(scope="module", params=("prefork-content", "event-content", "event-file"))
def servers(lab, root, request):
    mpm, kind = request.param.split("-")
    options = dict(mpm=mpm, http2=mpm == "event", config=config(root))
    settings = {"content_file_max": 65536 if kind == "content" else 0}
    yield (lab.stock(f"{request.param}-stock", root, **options).start(),
           lab.under_test(request.param, root, daemon_settings=settings, **options))
    lab.end()


def http1(server, path, method="GET"):
    raw = rawhttp.exchange(server.port, rawhttp.request(method, path))
    response = rawhttp.parse(raw, [method])[0]
    return response.status, response.get("Content-Length"), response.get("Transfer-Encoding"), response.body


def http2(server, path):
    done = subprocess.run(["curl", "-s", "-i", "--noproxy", "*", "--http2-prior-knowledge",
                           f"http://localhost:{server.h2c_port}{path}"], capture_output=True, timeout=30, check=True)
    head, body = done.stdout.split(b"\r\n\r\n", 1)
    return head.split()[1], re.findall(rb"(?i)\r\ncontent-length: (\d+)", head), body


def compare(ask, servers, *args):
    stock, ours = ([ask(server, *args) for _ in range(ROUNDS)] for server in servers)
    for number, (theirs, mine) in enumerate(zip(stock, ours)):
        assert mine[:-1] == theirs[:-1], f"{args}, response {number}"
        assert mine[-1] == theirs[-1], f"{args}, body {number}"


@pytest.mark.parametrize("where", WHERE)
def test_same_framing(servers, where):
    for size in SIZES:
        compare(http1, servers, f"/{where}/{size}.shtml")
        compare(http1, servers, f"/{where}/{size}.shtml", "HEAD")
        if servers[0].h2c_port:
            compare(http2, servers, f"/{where}/{size}.shtml")
