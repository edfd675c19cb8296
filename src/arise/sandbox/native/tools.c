/* What the program does outside of a sandbox, for ARISE and its tests. */
#include "server.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442 /* the same on every machine */
#endif
enum { UNLIMITED = 1, UNCOVERED = 2 };

/* `server role SETTINGS IMAGE CWD STDIN ARGV...` prints the role of a program that a shell starts. */
int print_role(int count, char **words) {
    Settings given;
    List argv = {words + 6, (size_t)count - 6};
    Start start = {words[3], &argv, words[4], words[5]};
    if (!read_settings(words[2], &given)) return 2;
    printf("%d\n", role_of_start(&start, &given));
    return 0;
}

static int set_limit(const char *name, const char *value) {
    char *path = format("/proc/sys/user/%s", name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    int failed = file < 0 || write(file, value, strlen(value)) < 0;
    if (file >= 0) close(file);
    free(path);
    return failed;
}

/* Mount an empty, read-only folder or /dev/null over a path: what `bwrap --perms 0000 --tmpfs` and `--ro-bind` do. */
static int cover(const char *path) {
    struct {
        uint64_t set, clear, propagation, namespace;
    } read_only = {1 | 2 | 4, 0, 0, 0}; /* MOUNT_ATTR_RDONLY, NOSUID, NODEV */
    struct stat found;
    if (stat(path, &found) != 0) return 1;
    int failed = S_ISDIR(found.st_mode)
                     ? mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0000,size=4096")
                     : mount("/dev/null", path, NULL, MS_BIND, NULL);
    return failed || syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &read_only, sizeof read_only) != 0;
}

/* `server prepare USER MOUNTS NAME VALUE ... -- PATH ...`: set limits of a user namespace, which only a process inside it
   may, and cover paths in a namespace of mounts. Exits with 1 if a limit could not be set, plus 2 if a cover failed. */
int prepare(int count, char **words) {
    int at = 4, failed = 0;
    if (setns(atoi(words[2]), CLONE_NEWUSER) != 0) return UNLIMITED | UNCOVERED;
    for (; at + 1 < count && strcmp(words[at], "--") != 0; at += 2)
        if (set_limit(words[at], words[at + 1])) failed |= UNLIMITED;
    if (at + 1 < count && setns(atoi(words[3]), CLONE_NEWNS) != 0) return failed | UNCOVERED;
    for (at++; at < count; at++)
        if (cover(words[at])) failed |= UNCOVERED;
    return failed;
}
