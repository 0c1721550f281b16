# SPDX-License-Identifier: Apache-2.0
"""Network file systems with their servers, on loopback, in the virtual machine of tests/vm/run. Each takes kernel modules
and servers of the whole machine, so nowhere else.

A mount has a directory at the client, `at`, and the same one at the server, `behind`: a change there is another
machine's.
"""

import os
import shutil
import subprocess
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import pytest

from httpd import USER
from waiting import wait_for

INSIDE = os.environ.get("FLASHPACHE_VM") == "1"
NEEDS = "needs servers and clients of network file systems: run scripts/test vm"
EXPORT = Path("/srv/export")
NFSD = Path("/proc/fs/nfsd")
LEASES = Path("/proc/sys/fs/leases-enable")
THREADS = 8
# Only the clients of a server that started anew have to wait that long, but the kernel does not know that there are none.
GRACE_S = 10
SMB_CONFIG = """[global]
server role = standalone server
map to guest = never
load printers = no
disable spoolss = yes
interfaces = lo
bind interfaces only = yes
log file = /var/log/samba/log
pid directory = /run/samba
[export]
path = {export}
read only = no
force user = root
ea support = yes
"""
PASSWORD = "flashpache"
# The host's directory, mounted as another client's: the devices of tests/vm/run --share.
HOST, WHOLE = Path("/srv/host"), Path("/srv/share")
# The whole of CephFS, mounted as another client's.
CEPH = Path("/srv/ceph")
# One monitor, one object store in memory, one metadata server, nobody to tell apart.
CEPH_CONFIG = """[global]
fsid = 6f4d2a7e-0c53-4b8f-9d1e-5a2b3c4d5e6f
mon host = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
mon allow pool size one = true
[mon.a]
mon addr = 127.0.0.1
"""

Mount = namedtuple("Mount", "at behind")

_started = set()


def _run(*command, text=None, check=True):
    done = subprocess.run(list(map(str, command)), input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}")
    return done


def _serve(*command):
    """A server that goes on by itself, without our output: tests/vm/run waits for the end of that."""
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}")


def _start_nfs():
    _run("modprobe", "-a", "nfsd", "nfs", "nfsv3", "nfsv4")
    _run("mount", "-t", "nfsd", "nfsd", NFSD)
    for directory in ("/run/rpcbind", "/run/rpc_pipefs", "/var/lib/nfs/v4recovery"):
        Path(directory).mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "rpc_pipefs", "rpc_pipefs", "/run/rpc_pipefs")
    Path("/etc/exports").write_text(f"{EXPORT} 127.0.0.1(rw,no_root_squash,fsid=0,no_subtree_check,insecure,async)\n")
    _serve("rpcbind")
    _run("exportfs", "-ra")
    for name in ("nfsv4gracetime", "nfsv4leasetime"):
        (NFSD / name).write_text(f"{GRACE_S}\n")
    _serve("rpc.nfsd", THREADS)
    (NFSD / "v4_end_grace").write_text("Y\n")
    _serve("rpc.mountd")


def _start_smb():
    _run("modprobe", "cifs")
    config = Path("/etc/samba/smb.conf")
    config.write_text(SMB_CONFIG.format(export=EXPORT))
    for directory in ("/run/samba", "/var/log/samba", "/var/lib/samba/private", "/var/cache/samba"):
        Path(directory).mkdir(parents=True, exist_ok=True)
    _run("smbpasswd", "-s", "-a", "root", text=f"{PASSWORD}\n{PASSWORD}\n")
    _serve("smbd", "-D")
    wait_for(lambda: _run("smbcontrol", "smbd", "ping", check=False).returncode == 0, "smbd")


def _start_9p():
    _run("modprobe", "-a", "9p", "9pnet_fd")
    _serve("diod", "--no-auth", "--listen", "127.0.0.1:564", "--export", EXPORT, "--logdest", "syslog")


def _start_ceph():
    _run("modprobe", "ceph")
    for directory in ("/etc/ceph", "/run/ceph", "/var/lib/ceph/mon/ceph-a", "/var/lib/ceph/osd/ceph-0", CEPH):
        Path(directory).mkdir(parents=True, exist_ok=True)
    Path("/etc/ceph/ceph.conf").write_text(CEPH_CONFIG)
    monitors = Path("/etc/ceph/monitors")
    _run("monmaptool", "--create", "--add", "a", "127.0.0.1", "--fsid", CEPH_CONFIG.split()[3], monitors)
    _run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors)
    _serve("ceph-mon", "-i", "a")
    _run("ceph", "osd", "create")
    _run("ceph-osd", "--mkfs", "-i", "0")
    _serve("ceph-osd", "-i", "0")
    _serve("ceph-mds", "-i", "a")
    for pool in ("names", "contents"):
        _run("ceph", "osd", "pool", "create", pool, "8")
    _run("ceph", "fs", "new", "files", "names", "contents")
    wait_for(lambda: "up:active" in _run("ceph", "mds", "stat").stdout, "the metadata server", 120)
    _run("mount", "-t", "ceph", "-o", "noshare", "127.0.0.1:/", CEPH)


def _start_virtiofs():
    _run("modprobe", "virtiofs")
    HOST.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "virtiofs", "behind", HOST)
    WHOLE.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "virtiofs", "share", WHOLE)


def _started_once(start):
    if start not in _started:
        EXPORT.mkdir(parents=True, exist_ok=True)
        start()
        _started.add(start)


def _nfs4(name, delegations):
    _started_once(_start_nfs)
    LEASES.write_text(f"{int(delegations)}\n")
    return "nfs4", "vers=4.2", f"127.0.0.1:/{name}"


def _nfs3(name):
    _started_once(_start_nfs)
    # Locks would need a server more; httpd takes none below a document root.
    return "nfs", "vers=3,nolock", f"127.0.0.1:{EXPORT}/{name}"


def _cifs(name):
    _started_once(_start_smb)
    # The client decides by owner and mode, which an SMB server does not tell.
    return ("cifs", f"vers=3.1.1,username=root,password={PASSWORD},uid={USER},gid={USER},file_mode=0644,dir_mode=0755",
            f"//127.0.0.1/export/{name}")


def _9p(name):
    _started_once(_start_9p)
    return "9p", f"trans=tcp,port=564,version=9p2000.L,uname=root,access=user,aname={EXPORT}/{name}", "127.0.0.1"


def _virtiofs(name):
    """A device has one mount: a directory of it."""
    return "none", "bind", WHOLE / name


def _ceph(name):
    return "ceph", "", f"127.0.0.1:/{name}"


# EFS and many others grant no delegations: nfs4 is without.
KINDS = {"nfs4": lambda name: _nfs4(name, False), "nfs4-delegations": lambda name: _nfs4(name, True),
         "nfs3": _nfs3, "cifs": _cifs, "9p": _9p, "ceph": _ceph, "virtiofs": _virtiofs}
# The client shows the same for all files.
WITHOUT_MODES = ("cifs",)
# Whose own mount of the whole is the server's side.
WHOLE_BEHIND = {"ceph": (_start_ceph, CEPH), "virtiofs": (_start_virtiofs, HOST)}
# Their mounts take how long attributes are kept.
WITH_ACTIMEO = ("nfs4", "nfs4-delegations", "nfs3", "cifs")


def _behind(kind, name):
    """A new directory at the server, which may have to be started for it."""
    start, root = WHOLE_BEHIND.get(kind, (None, EXPORT))
    if start:
        _started_once(start)
    behind = root / name
    behind.mkdir(parents=True)
    return behind


@contextmanager
def mounted(kind, at, options=""):
    """A new directory of a server, mounted at a new directory. options: further ones of mount."""
    if not INSIDE:
        pytest.skip(NEEDS)
    at = Path(at)
    behind = _behind(kind, str(at).strip("/").replace("/", "-"))
    at.mkdir(parents=True)
    fs_type, of_kind, source = KINDS[kind](behind.name)
    _run("mount", "-t", fs_type, "-o", ",".join(filter(None, (of_kind, options))) or "rw", source, at)
    try:
        yield Mount(at, behind)
    finally:
        if os.path.ismount(at):
            _run("umount", "-l", at)
        shutil.rmtree(behind, ignore_errors=True)


@contextmanager
def automounted(at, timeout_s):
    """A new directory of an NFS server at a new directory below a new one, mounted by automount while something uses it."""
    if not shutil.which("automount"):
        pytest.skip("needs automount (package autofs)")
    at = Path(at)
    behind = _behind("nfs3", str(at).strip("/").replace("/", "-"))
    _started_once(_start_nfs)
    _run("modprobe", "autofs4")
    at.parent.mkdir(parents=True)
    table = at.parent.with_suffix(".map")
    # nobind: else, from this machine, it would bind the server's own directory.
    table.write_text(f"{at.name} -fstype=nfs,vers=3,nolock,nobind 127.0.0.1:{behind}\n")
    master = at.parent.with_suffix(".master")
    master.write_text(f"{at.parent} file:{table} --timeout={timeout_s}\n")
    daemon = subprocess.Popen(["automount", "--foreground", "--dont-check-daemon", "--verbose", master], stdin=subprocess.DEVNULL,
                              start_new_session=True)   # it tells the kernel its process group
    try:
        wait_for(lambda: os.path.ismount(at.parent), "automount")
        yield Mount(at, behind)
    finally:
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(behind, ignore_errors=True)


def is_mounted(at):
    """Without a look at it, which would mount it."""
    return any(line.split()[4] == str(at) and " - nfs" in line for line in Path("/proc/self/mountinfo").read_text().splitlines())


def mount_command(mount):
    """That mounts it again as it is now."""
    source, fs_type, options = _run("findmnt", "-n", "-o", "SOURCE,FSTYPE,OPTIONS", mount.at).stdout.split()
    return ["mount", "-t", fs_type, "-o", options, source, str(mount.at)]


def manual_advice(directory):
    """httpd's manual advises this for documents there: a child dies where a file that it has mapped shrinks."""
    done = _run("findmnt", "-n", "-o", "FSTYPE", "-T", directory, check=False)
    return "EnableMMAP Off\n" if done.stdout.strip() in ("nfs", "nfs4", "cifs", "9p", "ceph", "virtiofs") else ""


@contextmanager
def nfs_server_away():
    """It answers no client in the block, and then starts anew."""
    _serve("rpc.nfsd", 0)
    try:
        yield
    finally:
        _serve("rpc.nfsd", THREADS)
        (NFSD / "v4_end_grace").write_text("Y\n")
