# SPDX-License-Identifier: Apache-2.0
"""Fetching with http.client over one connection, and running bodycheck."""

import http.client
import re
import signal
import subprocess

SUMMARY = re.compile(r"bodies=(\d+) wrong=(\d+) failed=(\d+)")
LOST = re.compile(r"cut=(\d+) refused=(\d+)")
PAUSE_US = "5000"           # 16 connections make at most 3,200 requests a second: tests beside need the processor, too


class Client:
    """One keep-alive connection to an httpd."""

    def __init__(self, port, timeout=30, host="localhost"):
        self.host = host
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def get(self, path, tag=None, headers=None):
        """(status, body)"""
        self.conn.request("GET", path, headers={"Host": self.host, **({"X-Test": tag} if tag else {}), **(headers or {})})
        answer = self.conn.getresponse()
        return answer.status, answer.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.conn.close()


def get(port, path, tag=None, timeout=30):
    """(status, body) over a connection of its own."""
    with Client(port, timeout) as client:
        return client.get(path, tag)


class Load:
    """bodycheck in the background until end(), with a pause after each round; every failed or wrong body counts.

    lost: how many failures are lost connections (cut, refused).
    """

    def __init__(self, program, url, root, paths, concurrency=16, *options):
        self.command = [str(program), "--base", url, "--dir", str(root), "-c", str(concurrency),
                        "-n", "1000000000", "--pause", PAUSE_US, *options, *paths]
        self.process = None
        self.lost = (0, 0)

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def end(self):
        """(bodies, wrong, failed, complaints)"""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=90)
        found = LOST.search(out)
        self.lost = tuple(int(n) for n in found.groups()) if found else (0, 0)
        return (*summary(out, err), err)


def summary(out, err):
    found = SUMMARY.search(out)
    assert found, f"bodycheck gave no summary: {out}{err}"
    return tuple(int(n) for n in found.groups())


def bodycheck(program, url, root, paths, count, *options, concurrency=64):
    """Run it to the end: (bodies, wrong, failed, complaints)."""
    done = subprocess.run([str(program), "--base", url, "--dir", str(root), "-c", str(concurrency),
                           "-n", str(count), *options, *paths],
                          capture_output=True, text=True, timeout=600)
    return (*summary(done.stdout, done.stderr), done.stderr)
