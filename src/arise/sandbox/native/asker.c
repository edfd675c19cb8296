#include "server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_TEXT 4096
#define MAX_WORDS 64

/* Read the role from a resource limit that the kernel does not use and no process can raise. */
bool role_of_process(pid_t pid, int *role) {
    struct rlimit found;
    if (prlimit(pid, RLIMIT_LOCKS, NULL, &found) != 0) return false;
    *role = found.rlim_max == NOBODY || found.rlim_max == PROGRAM ? (int)found.rlim_max : SHELL;
    return true;
}

bool mark(pid_t pid, int role) {
    struct rlimit value = {(rlim_t)role, (rlim_t)role};
    return prlimit(pid, RLIMIT_LOCKS, &value, NULL) == 0;
}

/* Return the process of a thread with its start time; NULL if it is gone. */
char *process_of(pid_t pid) {
    Bytes status = {0}, stat = {0};
    char *found = NULL, *rest = NULL, *path = format("/proc/%d/status", pid);
    bool there = read_file(path, 65536, &status);
    free(path);
    char *leader = there ? strstr(status.data, "\nTgid:") : NULL;
    if (leader != NULL) {
        int number = atoi(leader + 6);
        path = format("/proc/%d/stat", number);
        there = read_file(path, 65536, &stat);
        free(path);
        char *after = there ? strrchr(stat.data, ')') : NULL, *word = NULL;
        if (after != NULL) word = strtok_r(after + 1, " \n", &rest);
        for (int at = 0; word && at < 19; at++) word = strtok_r(NULL, " \n", &rest);
        if (word != NULL) found = format("%d %s", number, word);
    }
    free(status.data);
    free(stat.data);
    return found;
}

char *name_of(pid_t pid) {
    Bytes found = {0};
    char *path = format("/proc/%d/comm", pid);
    bool there = read_file(path, 4096, &found);
    free(path);
    if (!there) return NULL;
    char *end = strchr(found.data, '\n');
    if (end != NULL) *end = 0;
    return found.data;
}

char *link_of(pid_t pid, const char *name) {
    char target[PATH_MAX], *path = format("/proc/%d/%s", pid, name);
    ssize_t size = readlink(path, target, sizeof target - 1);
    free(path);
    if (size < 0) return errno == ENOENT ? format("%s", "") : NULL;
    target[size] = 0;
    return format("%s", target);
}

/* Read up to `size` bytes; false if nothing can be read. */
static ssize_t read_some(pid_t pid, uint64_t address, void *into, size_t size) {
    char *path = format("/proc/%d/mem", pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (memory < 0) return -1;
    ssize_t got = pread(memory, into, size, (off_t)address);
    close(memory);
    return got;
}

bool read_memory(pid_t pid, uint64_t address, void *into, size_t size) {
    return read_some(pid, address, into, size) == (ssize_t)size;
}

char *text_of(pid_t pid, uint64_t address) {
    char text[MAX_TEXT + 1];
    ssize_t size = read_some(pid, address, text, MAX_TEXT);
    if (size < 0) return NULL;
    text[size] = 0;
    return format("%s", text);
}

bool words_of(pid_t pid, uint64_t address, List *into) {
    for (int at = 0; at < MAX_WORDS; at++) {
        uint64_t pointer;
        if (!read_memory(pid, address + 8 * (uint64_t)at, &pointer, sizeof pointer)) return false;
        if (pointer == 0) return true;
        char *word = text_of(pid, pointer);
        if (word == NULL) return false;
        append(into, word);
    }
    return true;
}

/* Return an absolute path without "", "." and ".." parts, without following links. */
char *normal_path(const char *text) {
    char *copy = format("%s", text), *rest = NULL;
    Bytes found = {0};
    add_text(&found, "");
    for (char *part = strtok_r(copy, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (strcmp(part, "..") == 0) {
            while (found.size > 0 && found.data[--found.size] != '/') continue;
            found.data[found.size] = 0;
        } else if (strcmp(part, ".") != 0) {
            add_text(&found, "/");
            add_text(&found, part);
        }
    }
    free(copy);
    if (found.size == 0) add_text(&found, "/");
    return found.data;
}

char *path_of(pid_t pid, int folder, uint64_t address) {
    char *text = text_of(pid, address), *found = NULL;
    if (text == NULL) return NULL;
    if (text[0] == '/') {
        found = normal_path(text);
    } else {
        char name[32];
        snprintf(name, sizeof name, "fd/%u", (unsigned)folder);
        char *base = link_of(pid, folder == HERE ? "cwd" : name);
        char *whole = base ? format("%s/%s", base, text) : NULL;
        if (whole != NULL) found = normal_path(whole);
        free(base);
        free(whole);
    }
    free(text);
    return found;
}

/* Find whether the program that it starts would inherit the socket; false if that cannot be read. */
bool hands_over(pid_t pid, ino_t inode, bool *answer) {
    char wanted[64], *path = format("/proc/%d/fd", pid);
    snprintf(wanted, sizeof wanted, "socket:[%llu]", (unsigned long long)inode);
    DIR *all = opendir(path);
    free(path);
    *answer = false;
    if (all == NULL) return false;
    for (struct dirent *entry; !*answer && (entry = readdir(all));) {
        if (!is_number(entry->d_name)) continue;
        char name[64];
        snprintf(name, sizeof name, "fd/%.20s", entry->d_name);
        char *target = link_of(pid, name);
        if (target != NULL && strcmp(target, wanted) == 0) {
            Bytes information = {0};
            path = format("/proc/%d/fdinfo/%s", pid, entry->d_name);
            char *flags = read_file(path, 65536, &information) ? strstr(information.data, "flags:") : NULL;
            if (flags != NULL && !(strtol(flags + 6, NULL, 8) & O_CLOEXEC)) *answer = true;
            free(path);
            free(information.data);
        }
        free(target);
    }
    closedir(all);
    return true;
}

/* Return whether a process that may not write the reward is alive. */
bool anybody_else(void) {
    DIR *all = opendir("/proc");
    bool found = all == NULL;
    for (struct dirent *entry; !found && (entry = readdir(all));) {
        int role;
        if (is_number(entry->d_name) && strcmp(entry->d_name, "1") != 0)
            found = role_of_process(atoi(entry->d_name), &role) && role == NOBODY;
    }
    if (all != NULL) closedir(all);
    return found;
}
