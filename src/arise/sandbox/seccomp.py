"""The system-call filter of a sandbox, as the BPF program that `bwrap --seccomp` takes.

Namespaces already isolate the host; the filter blocks what they do not: the kernel keyring, tracing of the sandbox's
own server, new namespaces, sockets that no namespace confines, limits shared by all sandboxes, and interfaces with a
long record of vulnerabilities. Calls newer than this list do not exist inside, unless they are named here.
"""

import functools
import os
import platform
import struct

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

# Refused by name with EPERM: (x86-64 number, AArch64 number or None where there is no such call).
_DENIED: dict[str, tuple[int, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),  # its groups are counted per user, and the sandboxes share one user
    "modify_ldt": (154, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "uselib": (134, None),
    "sysfs": (139, None),
}
# Absent by name, so that libraries fall back to older calls: clone3 hides its flags behind a pointer, while those of
# clone can be read, and io_setup uses a number of requests that the whole machine shares.
_ABSENT = {"clone3": (435, 435), "io_setup": (206, 0)}
_LAST_OLD = (334, 294)
"""After this number each architecture has a gap; from 424 on both use the same numbers."""
# The later call numbers that exist inside. Calls newer than this list do not exist until someone has reviewed them.
_NEW = {
    "pidfd_send_signal": 424,
    "pidfd_open": 434,
    "close_range": 436,
    "openat2": 437,
    "faccessat2": 439,
    "epoll_pwait2": 441,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "futex_waitv": 449,
    "fchmodat2": 452,
    "map_shadow_stack": 453,
    "mseal": 462,
    "setxattrat": 463,
    "getxattrat": 464,
    "listxattrat": 465,
    "removexattrat": 466,
}
_CLONE = (56, 220)
_SOCKETS = {"socket": (41, 198), "socketpair": (53, 199)}
_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}  # confined by the network and mount namespaces
_NETLINK, _ROUTE = 16, 0  # for netlink, only what lists the sandbox's own interfaces
_PRLIMIT = (302, 261)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def _argument(index: int, high: bool = False) -> bytes:
    """Load half of an argument; both architectures are little-endian."""
    return _instruction(_LOAD, _FIRST_ARGUMENT + 8 * index + 4 * high)


def _own_limits_only(column: int) -> list[bytes]:
    """Forbid setting the limits of another process, especially of the sandbox's server."""
    return [
        _instruction(_EQUAL, _PRLIMIT[column], if_false=8),
        _argument(0),
        _instruction(_EQUAL, 0, if_true=5),  # its own
        _argument(2),
        _instruction(_EQUAL, 0, if_false=2),
        _argument(2, high=True),
        _instruction(_EQUAL, 0, if_true=1),  # only reads them
        _refuse(EPERM),
        _instruction(_RETURN, _ALLOW),
    ]


def _sockets(column: int) -> list[bytes]:
    """Allow only sockets of the named families; leave the number of any other call loaded."""
    allow = _instruction(_RETURN, _ALLOW)
    families = [_instruction(_LOAD, _FIRST_ARGUMENT)]
    for family in _FAMILIES.values():
        families += [_instruction(_EQUAL, family, if_false=1), allow]
    families += [_instruction(_EQUAL, _NETLINK, if_false=3), _instruction(_LOAD, _THIRD_ARGUMENT)]
    families += [_instruction(_EQUAL, _ROUTE, if_false=1), allow, _refuse(EAFNOSUPPORT)]
    first, second = (numbers[column] for numbers in _SOCKETS.values())
    return [
        _instruction(_EQUAL, first, if_true=1),
        _instruction(_EQUAL, second, if_false=len(families)),
        *families,
    ]


@functools.cache
def filter_program(machine: str, guarded: bool = False) -> bytes | None:
    """Return the BPF program for `machine`; None if its system-call numbers are unknown.

    In a `guarded` sandbox the server sets limits of other processes; its guard denies that to commands.
    """
    if machine not in _MACHINES:
        return None
    column, arch = _MACHINES[machine]
    program = [
        _instruction(_LOAD, _ARCH),
        _instruction(_EQUAL, arch, if_true=1),
        _refuse(EPERM),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 numbers reach the same calls
        program += [_instruction(_AT_LEAST, _X32_BIT, if_false=1), _refuse(EPERM)]
    for error, calls in ((EPERM, _DENIED), (ENOSYS, _ABSENT)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                program += [_instruction(_EQUAL, number, if_false=1), _refuse(error)]
    newer = [_instruction(_EQUAL, number, if_true=len(_NEW) - at) for at, number in enumerate(_NEW.values())]
    program += [_instruction(_AT_LEAST, _LAST_OLD[column] + 1, if_false=len(newer) + 1), *newer, _refuse(ENOSYS)]
    if not guarded:
        program += _own_limits_only(column)
    program += _sockets(column)
    program += [_instruction(_EQUAL, _CLONE[column], if_false=3), _instruction(_LOAD, _FIRST_ARGUMENT)]
    program += [_instruction(_ANY_BIT, _NEW_NAMESPACES, if_false=1), _refuse(EPERM), _instruction(_RETURN, _ALLOW)]
    return b"".join(program)


def open_filter(guarded: bool = False) -> int | None:
    """Return a new file descriptor with this machine's filter, for one bwrap to read."""
    program = filter_program(platform.machine(), guarded)
    if program is None:
        return None
    fd = os.memfd_create("arise-seccomp")
    os.write(fd, program)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


_NOTIFY = 0x7FC00000
_WRITING = 0o1103  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_SECCOMP = (317, 277)
# Calls reported to the guard of a verifier's sandbox: (x86-64 number, AArch64 number, the argument that holds the
# flags of an open, which is allowed when it only reads).
_GUARDED: dict[str, tuple[int | None, int | None, int | None]] = {
    "execve": (59, 221, None),
    "execveat": (322, 281, None),
    "open": (2, None, 1),
    "creat": (85, None, None),
    "openat": (257, 56, 2),
    "openat2": (437, 437, None),
    "rename": (82, None, None),
    "renameat": (264, 38, None),
    "renameat2": (316, 276, None),
    "unlink": (87, None, None),
    "unlinkat": (263, 35, None),
    "exit_group": (231, 94, None),
}
_DUP = (33, 24)  # dup2, and dup3 which replaces it


def guard_settings(machine: str) -> dict[str, object] | None:
    """Return the guard's BPF programs and the names of the calls it supervises; None for an unknown machine."""
    if machine not in _MACHINES:
        return None
    column = _MACHINES[machine][0]
    allow, ask = _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _NOTIFY)
    number = _instruction(_LOAD, _NUMBER)
    program, calls = [number], {}
    for name, (*numbers, flags) in _GUARDED.items():
        found = numbers[column]
        if found is None:
            continue
        calls[found] = name
        if flags is None:
            program += [_instruction(_EQUAL, found, if_false=1), ask]
        else:
            program += [_instruction(_EQUAL, found, if_false=4), _argument(flags)]
            program += [_instruction(_ANY_BIT, _WRITING, if_false=1), ask, allow]
    # A shell restores its own output from a copy at descriptor 10 or above: its output to the file is then complete.
    calls[_DUP[column]] = "dup"
    program += [_instruction(_EQUAL, _DUP[column], if_false=5), _argument(0), _instruction(_AT_LEAST, 10, if_false=3)]
    program += [_argument(1), _instruction(_AT_LEAST, 3, if_true=1), ask]
    return {
        "seccomp": _SECCOMP[column],
        "limits": b"".join([number, *_own_limits_only(column), allow]).hex(),
        "notify": b"".join([*program, allow]).hex(),
        "calls": calls,
    }


def engine_profile() -> dict[str, object]:
    """Return the same denied calls as a seccomp profile for podman and docker."""
    bits = [1 << at for at in range(32) if _NEW_NAMESPACES >> at & 1]
    flags = [{"index": 0, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"} for bit in bits]
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            {"names": [*_DENIED], "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM},
            {"names": [*_ABSENT], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
            *({"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM, "args": [flag]} for flag in flags),
        ],
    }
