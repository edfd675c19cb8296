/* What the program does outside of a sandbox, for ARISE and its tests. */
#include "server.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `server role SETTINGS IMAGE CWD STDIN ARGV...` prints the role of a program that a shell starts. */
int print_role(int count, char **words) {
    Settings given;
    List argv = {words + 6, (size_t)count - 6};
    Start start = {words[3], &argv, words[4], words[5]};
    if (!read_settings(words[2], &given)) return 2;
    printf("%d\n", role_of_start(&start, &given));
    return 0;
}

/* `server limits NAMESPACE NAME VALUE ...` sets limits of a user namespace, which only a process inside it may. */
int set_limits(int count, char **words) {
    if (setns(atoi(words[2]), CLONE_NEWUSER) != 0) return 1;
    for (int at = 3; at + 1 < count; at += 2) {
        char *path = format("/proc/sys/user/%s", words[at]);
        int file = open(path, O_WRONLY | O_CLOEXEC);
        if (file < 0 || write(file, words[at + 1], strlen(words[at + 1])) < 0) return 1;
        close(file);
        free(path);
    }
    return 0;
}
