/* Process 1 of a sandbox: `server CONTROL THREADS MEMORY OWNER SETTINGS [WORKDIR]` runs commands for the host one at a time.
 * CONTROL is a descriptor, or in a container the path of a socket. */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT, TIMEOUT, OUTPUT, MEMORY, PROCESSES };
enum { ALONE = 1, GUARDED = 2, AS_USER = 4 };
enum { LEFT = 1, SIGNALLED = 2 };
#define NOT_STARTED 126
#define LINGER_SECONDS 0.3
#define IDLE_MILLISECONDS 100

extern char **environ;
static int control;
static long max_threads;
static int64_t max_memory;
static const char *settings = "";

static void read_exactly(void *into, size_t size) {
    for (char *at = into; size;) {
        ssize_t got = read(control, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) _exit(0);
        at += got;
        size -= (size_t)got;
    }
}

static void write_all(const void *data, size_t size) {
    for (const char *at = data; size;) {
        ssize_t sent = write(control, at, size);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) _exit(0);
        at += sent;
        size -= (size_t)sent;
    }
}

static uint32_t number_at(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void reap(bool wait) {
    while (waitpid(-1, NULL, wait ? 0 : WNOHANG) > 0) continue;
}

static bool signal_all(int number) { return kill(-1, number) == 0 || errno != ESRCH; }

/* Read what is there; false at the end of the pipe. */
static bool read_output(int source, Bytes *output) {
    char part[65536];
    ssize_t got = read(source, part, sizeof part);
    if (got > 0) add(output, part, (size_t)got);
    return got != 0;
}

static void drain(int source, Bytes *output, uint32_t cap) {
    char part[65536];
    fcntl(source, F_SETFL, O_NONBLOCK);
    for (ssize_t got; output->size <= cap && (got = read(source, part, sizeof part)) > 0;) add(output, part, (size_t)got);
}

static int milliseconds(double seconds) { return seconds > 0 ? (int)(seconds * 1000) + 1 : 0; }

/* Wait briefly for output of the last processes of a command, as behind `> >(cat)`. */
static void tail(int source, Bytes *output, uint32_t cap) {
    double deadline = now() + LINGER_SECONDS, left;
    struct pollfd watched = {source, POLLIN, 0};
    while (output->size <= cap && (left = deadline - now()) > 0)
        if (poll(&watched, 1, milliseconds(left)) > 0 && !read_output(source, output)) return;
}

/* Return whether processes outlive the command, after a short wait for those about to exit. */
static bool any_left(int source, Bytes *output, uint32_t cap, bool guarded) {
    Allowance allowance = allow(LINGER_SECONDS);
    while (true) {
        drain(source, output, cap);
        if (guarded) serve_guard();
        reap(false);
        if (!signal_all(0)) return false;
        look(&allowance);
        if (time_left(&allowance) <= 0) return true;
        usleep(2000);
    }
}

/* Switch permanently to a user's numeric ids, "UID GID GROUP,GROUP": user, group and supplementary groups. */
int become(const char *user) {
    gid_t others[256];
    size_t count = 0;
    char *at;
    uid_t uid = (uid_t)strtoul(user, &at, 10);
    gid_t gid = (gid_t)strtoul(at, &at, 10);
    while (*at && count < 256) {
        at += strspn(at, " ,");
        if (*at) others[count++] = (gid_t)strtoul(at, &at, 10);
    }
    return setgroups(count, others) || setgid(gid) || setuid(uid) ? -1 : 0;
}

static pid_t spawn_as(const char *command, int output, const char *user) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    if (nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0 && become(user) == 0)
        execl("/bin/bash", "bash", "-c", command, (char *)NULL);
    _exit(NOT_STARTED);
}

/* Start the command in its own session, with only /dev/null and the output pipe open; -1 with errno if it cannot. */
static pid_t spawn(const char *command, int output) {
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    char *argv[] = {"bash", "-c", (char *)command, NULL};
    errno = posix_spawn(&pid, "/bin/bash", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return errno ? -1 : pid;
}

static int excess(const Usage *found) {
    if (max_threads && found->threads > max_threads) return PROCESSES;
    return max_memory && private_memory() > max_memory ? MEMORY : 0;
}

/* Wait for the next command; meanwhile kill processes of earlier commands once they exceed a limit. */
static void idle(void) {
    struct pollfd watched = {control, POLLIN, 0};
    while (max_threads && poll(&watched, 1, IDLE_MILLISECONDS) == 0) {
        reap(false);
        if (!signal_all(0)) return;
        Usage found = usage();
        if (excess(&found)) signal_all(SIGKILL);
    }
}

/* Collect output until the command exits, times out or reaches a limit. */
static int watch(int ended, int source, Allowance *allowance, uint32_t cap, bool guarded, Bytes *output) {
    struct pollfd watched[] = {
        {source, POLLIN, 0}, {ended, POLLIN, 0}, {control, POLLRDHUP, 0}, {guarded ? guard_descriptor() : -1, POLLIN, 0}};
    while (true) {
        int over = look(allowance) ? excess(&allowance->usage) : 0;
        if (over) return over;
        if (time_left(allowance) <= 0) return TIMEOUT;
        for (int at = 0; at < 4; at++) watched[at].revents = 0;
        if (poll(watched, 4, milliseconds(next_look(allowance))) < 0) continue;
        if (watched[2].revents) _exit(0); /* the host is gone */
        if (guarded) serve_guard();
        if (watched[0].revents) {
            if (!read_output(source, output)) watched[0].fd = -1;
            if (output->size > cap) return OUTPUT;
        } else if (watched[1].revents) { /* only once the pipe is empty: what was printed before the exit counts */
            return EXIT;
        }
    }
}

typedef struct {
    int ended, code, marks;
    Bytes output;
} Result;

static Result not_started(void) {
    char *said = format("the command could not start ([Errno %d] %s); all processes were ended\n", errno, strerror(errno));
    Result result = {EXIT, NOT_STARTED, LEFT, {0}};
    signal_all(SIGKILL);
    reap(true);
    add_text(&result.output, said);
    free(said);
    return result;
}

/* Run one command; if it reaches a limit, or with `alone`, kill every process left in the sandbox. */
static Result run(const char *command, double seconds, uint32_t cap, bool alone, bool guarded, const char *user) {
    Result result = {EXIT, 0, 0, {0}};
    int ends[2], status = 0;
    reap(false);
    if (pipe2(ends, O_CLOEXEC) != 0) return not_started();
    Allowance allowance = allow(seconds);
    pid_t pid = guarded ? spawn_guarded(command, ends[1], user)
                : user  ? spawn_as(command, ends[1], user)
                        : spawn(command, ends[1]);
    int ended = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    int failed = errno;
    close(ends[1]);
    if (ended < 0) {
        close(ends[0]);
        errno = failed;
        return not_started();
    }
    result.ended = watch(ended, ends[0], &allowance, cap, guarded, &result.output);
    close(ended);
    if (result.ended != EXIT)
        signal_all(SIGKILL);
    else if (!alone)
        tail(ends[0], &result.output, cap);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    bool left = result.ended != EXIT || (alone && any_left(ends[0], &result.output, cap, guarded));
    if (left) {
        signal_all(SIGKILL);
        reap(true);
    }
    drain(ends[0], &result.output, cap);
    close(ends[0]);
    result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    result.marks = (left ? LEFT : 0) | (WIFSIGNALED(status) ? SIGNALLED : 0);
    return result;
}

static void put_number(unsigned char *into, size_t value) {
    for (int at = 0; at < 4; at++) into[at] = (unsigned char)(value >> (24 - 8 * at));
}

static void answer_next(void) {
    unsigned char header[13], sizes[11];
    read_exactly(header, sizeof header);
    uint32_t size = number_at(header), cap = number_at(header + 8);
    char *frame = claim(NULL, (size_t)size + 1), *command = frame, *user = NULL;
    read_exactly(frame, size);
    frame[size] = 0;
    if (header[12] & AS_USER) {
        user = frame;
        command = frame + strlen(frame) + (strlen(frame) < size);
    }
    bool guarded = header[12] & GUARDED;
    Result result;
    if (guarded && !begin_guard(settings)) {
        errno = EINVAL;
        result = not_started();
        guarded = false;
    } else {
        result = run(command, number_at(header + 4) / 1000.0, cap, header[12] & ALONE, guarded, user);
    }
    Bytes report = {0};
    if (guarded) {
        report_guard(&report);
        end_guard();
    }
    sizes[0] = (unsigned char)result.ended;
    sizes[1] = (unsigned char)result.code;
    sizes[2] = (unsigned char)result.marks;
    put_number(sizes + 3, result.output.size);
    put_number(sizes + 7, report.size);
    write_all(sizes, sizeof sizes);
    write_all(result.output.data, result.output.size);
    write_all(report.data, report.size);
    free(frame);
    free(result.output.data);
    free(report.data);
}

int main(int count, char **words) {
    if (count >= 4 && strcmp(words[1], "prepare") == 0) return prepare(count, words);
    if (count >= 6 && strcmp(words[1], "role") == 0) return print_role(count, words);
    if (count < 5) return 2;
    control = is_number(words[1]) ? atoi(words[1]) : connect_to(words[1]);
    if (control < 0 || (count > 6 && !enter_folder(words[6]))) return 3;
    max_threads = atol(words[2]);
    max_memory = atoll(words[3]);
    if (count > 5) settings = words[5];
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_IGN); /* as Python does, so that commands see the same under either server */
    signal(SIGXFSZ, SIG_IGN);
    fcntl(control, F_SETFD, FD_CLOEXEC);
    write_all("R", 1);
    while (true) {
        idle();
        answer_next();
    }
}
