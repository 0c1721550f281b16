# SPDX-License-Identifier: Apache-2.0
"""POSIX access control lists by the system call that setfacl makes."""

import os
import struct

from httpd import user_ids

NAME = "system.posix_acl_access"
VERSION = 2
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 0xffffffff


def denying(mode, uid):
    """The ACL that `setfacl -m u:UID:---` makes of a mode. The mode stays: the mask is the group's part."""
    owner, group, other = mode >> 6 & 7, mode >> 3 & 7, mode & 7
    rows = ((USER_OBJ, owner, NOBODY), (USER, 0, uid), (GROUP_OBJ, group, NOBODY), (MASK, group, NOBODY),
            (OTHER, other, NOBODY))
    return struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", *row) for row in rows)


def deny(path):
    """From now on Apache's user may do nothing with the file."""
    os.setxattr(path, NAME, denying(os.stat(path).st_mode, user_ids()[0]))


def allow(path):
    """Restores the rights from before deny()."""
    os.removexattr(path, NAME)
