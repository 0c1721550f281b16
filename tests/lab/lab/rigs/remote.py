# SPDX-License-Identifier: Apache-2.0
"""Other real network file systems, each with client and server on this machine, on loopback."""

import os

import httpd as httpd_tests

from lab.rigs.network import Remote
from lab.rigs.rig import run
from waiting import wait_for


class Rclone(Remote):
    name = "rclone"
    about = "rclone mount of a private WebDAV server, with names and attributes kept for a second"
    kind = "fuse.rclone"
    programs = {"rclone": "rclone", "fusermount3": "fuse3"}

    def build(self):
        super().build()
        url = self.serve_webdav()
        self.spawn([*self.elsewhere(), "rclone", "--config", self.none(), "mount", ":webdav:", self.target, "--webdav-url", url,
                    "--allow-other", "--dir-cache-time", "1s", "--attr-timeout", "1s", "--poll-interval", "0"])
        self.wait_for_mount()

    def none(self):
        """An empty configuration, so that this user's own is not read."""
        path = self.directory / "rclone.conf"
        path.touch()
        return path

    def serve_webdav(self):
        port = httpd_tests.free_port()
        self.spawn([*self.elsewhere(), "rclone", "--config", self.none(), "serve", "webdav", self.files, "--addr",
                    f"127.0.0.1:{port}"])
        wait_for(lambda: self.listens(port), "rclone to serve")
        return f"http://127.0.0.1:{port}"


class Davfs(Rclone):
    name = "davfs"
    about = "davfs2, which keeps whole files and asks whether they changed each second"
    kind = "fuse"
    programs = {"mount.davfs": "davfs2", "rclone": "rclone"}

    def build(self):
        Remote.build(self)
        url = self.serve_webdav()
        cache, conf = self.directory / "davfs", self.directory / "davfs2.conf"
        cache.mkdir(exist_ok=True)
        cache.chmod(0o777)          # davfs2 drops to a user of its own
        conf.write_text(f"use_locks 0\nask_auth 0\ndir_refresh 1\nfile_refresh 1\ngui_optimize 0\ncache_dir {cache}\n")
        run("mount.davfs", url, self.target, "-o", f"conf={conf},uid={httpd_tests.USER},gid={httpd_tests.USER}")
        self.wait_for_mount()


class Gluster(Remote):
    name = "gluster"
    about = "GlusterFS, one brick and its FUSE client, with names and attributes kept for a second"
    kind = "fuse.glusterfs"
    programs = {"glusterfsd": "glusterfs-server", "glusterfs": "glusterfs-client"}

    def build(self):
        super().build()
        port = httpd_tests.free_port()
        brick = self.volume("brick", f"""volume posix
    type storage/posix
    option directory {self.files}
end-volume
volume locks
    type features/locks
    subvolumes posix
end-volume
volume server
    type protocol/server
    option transport-type tcp
    option transport.socket.bind-address 127.0.0.1
    option transport.socket.listen-port {port}
    option auth.addr.locks.allow 127.0.0.1
    subvolumes locks
end-volume
""")
        client = self.volume("client", f"""volume client
    type protocol/client
    option transport-type tcp
    option remote-host 127.0.0.1
    option remote-port {port}
    option remote-subvolume locks
end-volume
""")
        self.spawn([*self.elsewhere(), "glusterfsd", "-N", "-f", brick, "-l", self.directory / "brick.log", "-p",
                    self.directory / "brick.pid"])
        wait_for(lambda: self.listens(port), "glusterfsd to listen")
        self.spawn([*self.elsewhere(), "glusterfs", "-N", "-f", client, "-l", self.directory / "client.log",
                    "--attribute-timeout=1", "--entry-timeout=1", self.target])
        self.wait_for_mount()
        wait_for(lambda: os.listdir(self.target), "GlusterFS to have a connection")

    def volume(self, name, text):
        path = self.directory / f"{name}.vol"
        path.write_text(text)
        return path
