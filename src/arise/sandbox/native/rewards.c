#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (64 * 1024)
#define MAX_NOTES 5

typedef struct Reward {
    struct Reward *next;
    char *path; /* NULL once it is replaced or removed; its channel is then read, and nothing of it reported */
    char *writer, *handed_to;
    long order;
    Bytes data;
    int channel, file;
    ino_t inode;
} Reward;

static struct {
    const char *logs;
    int waiting;
    Reward *first;
    List programs, notes;
    long order;
} kept;

void begin_rewards(const char *logs, int waiting) {
    memset(&kept, 0, sizeof kept);
    kept.logs = logs;
    kept.waiting = waiting;
}

static void close_channel(Reward *reward) {
    if (reward->channel >= 0) close(reward->channel);
    if (reward->file >= 0) close(reward->file);
    reward->channel = reward->file = -1;
}

static void drain(Reward *reward) {
    char part[65536];
    while (reward->channel >= 0) {
        ssize_t got = recv(reward->channel, part, sizeof part, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            close_channel(reward);
            return;
        }
        size_t room = reward->data.size > MAX_BYTES ? 0 : MAX_BYTES + 1 - reward->data.size;
        add(&reward->data, part, (size_t)got < room ? (size_t)got : room);
        if (reward->file >= 0 && write(reward->file, part, (size_t)got) < 0) continue; /* only a copy for readers */
    }
}

static Reward *reward_at(const char *path) {
    for (Reward *reward = kept.first; reward; reward = reward->next)
        if (reward->path && strcmp(reward->path, path) == 0) return reward;
    return NULL;
}

static void retire(Reward *reward) {
    if (reward == NULL) return;
    free(reward->path);
    reward->path = NULL;
}

static Reward *new_reward(const char *path, char *writer) {
    Reward *reward = memset(claim(NULL, sizeof *reward), 0, sizeof *reward), **end = &kept.first;
    reward->path = format("%s", path);
    reward->writer = writer;
    reward->order = ++kept.order;
    reward->channel = reward->file = -1;
    while (*end) end = &(*end)->next;
    return *end = reward;
}

static void note(char *text) {
    if (holds(&kept.notes, text) || kept.notes.count >= MAX_NOTES)
        free(text);
    else
        append(&kept.notes, text);
}

/* Return whether a name is watched: the two that count, and those that tests write first and then rename. */
static bool concerns(const char *path) {
    size_t size = (size_t)(base_name(path) - path);
    bool inside = size == strlen(kept.logs) + 1 && strncmp(path, kept.logs, size - 1) == 0;
    return inside && strstr(base_name(path), "reward") != NULL;
}

/* Find whether writes of the asker count; those of a child forked by one of the programs do not. */
bool may_write(pid_t asker, bool *answer) {
    int role;
    if (!role_of_process(asker, &role)) return false;
    *answer = role == SHELL;
    if (role == PROGRAM) {
        char *process = process_of(asker);
        if (process == NULL) return false;
        *answer = holds(&kept.programs, process);
        free(process);
    }
    return true;
}

bool may_write_from_now(pid_t asker) {
    char *process = process_of(asker);
    if (process != NULL) append(&kept.programs, process);
    return process != NULL;
}

/* Create a file at the path for tests that check its existence; -1 if it cannot be written. */
static int shown(const char *path, int flags) {
    if (flags & O_TRUNC) unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (flags & (O_TRUNC | O_APPEND)), 0644);
    struct stat found;
    if (file >= 0 && (fstat(file, &found) != 0 || !S_ISREG(found.st_mode))) {
        close(file);
        return -1;
    }
    return file;
}

/* Set the channel of an asker that opens a reward file; -1 lets it open the file at the path. */
bool open_reward(pid_t asker, const char *path, int flags, int *channel) {
    *channel = -1;
    if (!concerns(path)) return true;
    bool may;
    if (!may_write(asker, &may)) return false;
    char *name = name_of(asker);
    if (name == NULL) return false;
    if (!may) {
        note(format("%s wrote %s", name, base_name(path)));
        free(name);
        return true;
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    Reward *before = reward_at(path);
    if (before) drain(before);
    Reward *reward = new_reward(path, name);
    if (before && !(flags & O_TRUNC)) add(&reward->data, before->data.data ? before->data.data : "", before->data.size);
    retire(before);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    shutdown(ends[0], SHUT_WR); /* a reader of its own output sees the end of file and does not block */
    struct stat found = {0};
    fstat(ends[1], &found);
    reward->inode = found.st_ino;
    reward->channel = ends[0];
    reward->file = shown(path, flags);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = ends[0]};
    epoll_ctl(kept.waiting, EPOLL_CTL_ADD, ends[0], &event);
    *channel = ends[1];
    return true;
}

bool remove_reward(pid_t asker, const char *path) {
    Reward *reward = reward_at(path);
    bool may = false;
    if (reward && !may_write(asker, &may)) return false;
    if (may) retire(reward);
    return true;
}

/* Read a regular file of the rewards' folder; false if it cannot be opened. */
static bool content(const char *path, Bytes *into) {
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    struct stat found;
    bool regular = fstat(file, &found) == 0 && S_ISREG(found.st_mode);
    char part[4096];
    for (ssize_t got; regular && into->size <= MAX_BYTES && (got = read(file, part, sizeof part)) > 0;)
        add(into, part, (size_t)got);
    if (into->size > MAX_BYTES + 1) into->size = MAX_BYTES + 1;
    close(file);
    return regular;
}

/* Count a file renamed to a reward file if it was written as one, or while no other process could change it. */
bool rename_reward(pid_t asker, const char *source, const char *target) {
    if (!concerns(target)) return remove_reward(asker, source);
    bool may;
    if (!may_write(asker, &may)) return false;
    char *name = name_of(asker);
    if (name == NULL) return false;
    Reward *moved = reward_at(source);
    if (!may) {
        note(format("%s moved a file to %s", name, base_name(target)));
    } else if (moved != NULL) {
        if (strcmp(source, target) != 0) retire(reward_at(target));
        free(moved->path);
        moved->path = format("%s", target);
        moved->order = ++kept.order;
    } else {
        Bytes data = {0};
        size_t size = (size_t)(base_name(source) - source);
        bool inside = size == strlen(kept.logs) + 1 && strncmp(source, kept.logs, size - 1) == 0;
        bool counts = inside && !anybody_else() && content(source, &data);
        retire(reward_at(target));
        if (counts) {
            new_reward(target, name)->data = data;
            return true;
        }
        free(data.data);
        note(format("%s was moved there while programs of the attempt could change it", base_name(target)));
    }
    free(name);
    return true;
}

/* Mark reward files that the asker leaves open for an unpermitted program, whose writes do not count. */
bool hand_over(pid_t asker, const char *image) {
    for (Reward *reward = kept.first; reward; reward = reward->next) {
        bool inherited;
        if (reward->channel < 0) continue;
        if (!hands_over(asker, reward->inode, &inherited)) return false;
        if (inherited) {
            free(reward->handed_to);
            reward->handed_to = format("%s", image);
        }
    }
    return true;
}

void drain_rewards(void) {
    for (Reward *reward = kept.first; reward; reward = reward->next) drain(reward);
}

static void add_field(Bytes *into, const char *name, const char *value, size_t size) {
    add_text(into, name);
    add_json(into, value ? value : "", value ? size : 0);
}

void report_rewards(Bytes *into) {
    drain_rewards();
    const char *between = "";
    add_text(into, "\"files\": [");
    for (Reward *reward = kept.first; reward; reward = reward->next) {
        if (reward->path == NULL) continue;
        add_text(into, between);
        add_field(into, "{\"name\": ", base_name(reward->path), strlen(base_name(reward->path)));
        add_field(into, ", \"data\": ", reward->data.data, reward->data.size);
        add_field(into, ", \"writer\": ", reward->writer, strlen(reward->writer));
        char *handed = reward->handed_to;
        add_field(into, ", \"handed_to\": ", handed, handed ? strlen(handed) : 0);
        char *order = format(", \"order\": %ld}", reward->order);
        add_text(into, order);
        free(order);
        between = ", ";
    }
    add_text(into, "], \"notes\": [");
    for (size_t at = 0; at < kept.notes.count; at++) {
        add_text(into, at ? ", " : "");
        add_json(into, kept.notes.items[at], strlen(kept.notes.items[at]));
    }
    add_text(into, "]");
}

void end_rewards(void) {
    for (Reward *reward = kept.first; reward; reward = reward->next) close_channel(reward);
}
