# SPDX-License-Identifier: Apache-2.0
"""A system that refuses system calls, as a container's or a service's filter does: it starts a program under one.

    refusing.py ERRNO CALL[,CALL ...] PROGRAM [ARGUMENT ...]

Each CALL fails with ERRNO, in the program and all that it starts. A call may be a number, or `newer`: statx
(Linux 4.11) and all later calls, which an old list of allowed calls does not have.
"""

import ctypes
import errno
import os
import re
import sys
from pathlib import Path

ALLOW, REFUSE = 0x7FFF0000, 0x00050000          # actions of libseccomp
NO_NEW_PRIVILEGES = 3                           # its attribute: httpd has to become another user
NEWER = "newer"
NUMBERS = 600                                   # more than there are
SANDBOX = Path(__file__).resolve().parents[2] / "backend/privsep/sandbox.c"


def library():
    lib = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_init.argtypes = [ctypes.c_uint32]
    lib.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                           ctypes.c_void_p]
    lib.seccomp_load.argtypes = [ctypes.c_void_p]
    return lib


def number_of(call):
    """This machine's number; below 0: it has no such call."""
    return int(call) if call.isdigit() else library().seccomp_syscall_resolve_name(call.encode())


def calls_of_the_filters():
    """The names in the lists of the daemon's own filters, but those that this machine does not have."""
    names = dict.fromkeys(re.findall(r"SCMP_SYS\((\w+)\)", SANDBOX.read_text()))
    return [name for name in names if number_of(name) >= 0]


def load(error, calls):
    lib = library()
    context = lib.seccomp_init(ALLOW)
    lib.seccomp_attr_set(context, NO_NEW_PRIVILEGES, 0)
    numbers = {number_of(call) for call in calls if call != NEWER}
    if NEWER in calls:
        numbers |= set(range(number_of("statx"), NUMBERS))
    for number in numbers:
        if lib.seccomp_rule_add_array(context, REFUSE | error, number, 0, None) != 0:
            raise SystemExit(f"no rule for {number}")
    if lib.seccomp_load(context) != 0:
        raise SystemExit("no filter of system calls can be set")


def command(error, *calls):
    """The words in front of a program's own command."""
    return [sys.executable, "-S", "-B", __file__, error, ",".join(calls)]


if __name__ == "__main__":
    load(getattr(errno, sys.argv[1]), sys.argv[2].split(","))
    os.execv(sys.argv[3], sys.argv[3:])
