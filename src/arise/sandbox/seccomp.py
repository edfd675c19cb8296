"""The system-call filter of a sandbox, as the BPF program that `bwrap --seccomp` takes.

Namespaces already keep the host out of reach; the filter closes what they leave open: the kernel keyring, tracing of
the sandbox's own server, new namespaces, and interfaces with a long record of faults. Refused calls fail with EPERM.
"""

import os
import platform
import struct

EPERM, ENOSYS = 1, 38
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

# Refused by name: (x86-64 number, AArch64 number).
_DENIED = {
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
}
_CLONE = (56, 220)
_CLONE3 = 435
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def filter_program(machine: str) -> bytes | None:
    """The BPF program for `machine`, or None where its system-call numbers are not known here."""
    if machine not in _MACHINES:
        return None
    column, arch = _MACHINES[machine]
    program = [
        _instruction(_LOAD, _ARCH),
        _instruction(_EQUAL, arch, if_true=1),
        _refuse(EPERM),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 numbers reach the same calls by another door
        program += [_instruction(_AT_LEAST, _X32_BIT, if_false=1), _refuse(EPERM)]
    for numbers in _DENIED.values():
        program += [_instruction(_EQUAL, numbers[column], if_false=1), _refuse(EPERM)]
    # clone3 hides its flags behind a pointer; ENOSYS makes the C library fall back to clone, whose flags can be read.
    program += [_instruction(_EQUAL, _CLONE3, if_false=1), _refuse(ENOSYS)]
    program += [_instruction(_EQUAL, _CLONE[column], if_false=3), _instruction(_LOAD, _FIRST_ARGUMENT)]
    program += [_instruction(_ANY_BIT, _NEW_NAMESPACES, if_false=1), _refuse(EPERM), _instruction(_RETURN, _ALLOW)]
    return b"".join(program)


def open_filter() -> int | None:
    """A fresh descriptor holding the filter of this machine, for one bwrap to read to its end."""
    program = filter_program(platform.machine())
    if program is None:
        return None
    fd = os.memfd_create("arise-seccomp")
    os.write(fd, program)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
