#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
#define NOT_STARTED 126

static Settings settings;
static int waiting = -1, listener = -1;
static char missing[256];

bool begin_guard(const char *text) {
    static bool read;
    if (!read && !read_settings(text, &settings)) return false;
    read = true;
    waiting = epoll_create1(EPOLL_CLOEXEC);
    listener = -1;
    snprintf(missing, sizeof missing, "the command did not start");
    forget_tests();
    begin_rewards(settings.logs, waiting);
    return waiting >= 0;
}

int guard_descriptor(void) { return waiting; }

static int install(const Bytes *program, unsigned long flags) {
    struct sock_fprog given = {(unsigned short)(program->size / 8), (struct sock_filter *)program->data};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &given);
}

/* Install the filters in the new process; -1 with errno if the kernel cannot. */
static int listen_to_calls(void) {
    int role, found;
    if (install(&settings.limits, 0) < 0 || !role_of_process(0, &role)) return -1;
    if (role != SHELL) { /* the limit that holds the role is lowered already */
        errno = EPERM;
        return -1;
    }
    found = install(&settings.notify, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    /* before Linux 5.19, where a signal can interrupt a call that waits for its answer */
    return found >= 0 ? found : install(&settings.notify, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static void tell(int supervisor, const char *text, int descriptor) {
    struct iovec part = {(void *)text, strlen(text)};
    char room[CMSG_SPACE(sizeof descriptor)] = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    sendmsg(supervisor, &message, 0);
}

static void start_here(const char *command, int output, int supervisor, const char *user) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(NOT_STARTED);
    if (user != NULL && become(user) != 0) _exit(NOT_STARTED);
    int found = listen_to_calls();
    if (found >= 0)
        fcntl(found, F_SETFD, FD_CLOEXEC);
    tell(supervisor, found >= 0 ? "+" : strerror(errno), found);
    execl("/bin/bash", "bash", "-c", command, (char *)NULL);
    _exit(NOT_STARTED);
}

/* Start the command as its user, supervised from its first instruction; -1 if no process can be made. */
pid_t spawn_guarded(const char *command, int output, const char *user) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    pid_t pid = fork();
    if (pid == 0) start_here(command, output, ends[1], user);
    int failed = errno;
    close(ends[1]);
    if (pid > 0) {
        char told[200], room[CMSG_SPACE(sizeof(int))];
        struct iovec part = {told, sizeof told};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        ssize_t got = recvmsg(ends[0], &message, MSG_CMSG_CLOEXEC);
        struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
        if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
            memcpy(&listener, CMSG_DATA(header), sizeof listener);
            struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
            epoll_ctl(waiting, EPOLL_CTL_ADD, listener, &event);
            missing[0] = 0;
        } else if (got > 0) {
            snprintf(missing, sizeof missing, "%.*s", (int)got, told);
        }
    }
    close(ends[0]);
    errno = failed;
    return pid;
}

/* Mark a program as it starts; false if it may not start, because its arguments cannot be read. */
static bool judge_start(pid_t asker, int folder, uint64_t path, uint64_t words) {
    int role, allowed = NOBODY;
    bool may = false, known;
    if (!role_of_process(asker, &role)) return false;
    if (role == NOBODY) return true;
    char *image = NULL, *cwd = NULL, *input = NULL;
    List argv = {0};
    known = may_write(asker, &may);
    if (known && may) {
        known = (image = path_of(asker, folder, path)) && words_of(asker, words, &argv) &&
                (cwd = link_of(asker, "cwd")) && (input = link_of(asker, "fd/0"));
        if (known && !is_theirs(image, &settings)) {
            Start start = {image, &argv, cwd, input};
            allowed = role_of_start(&start, &settings);
            if (allowed > role) allowed = role;
        }
    }
    if (allowed == NOBODY && !hand_over(asker, image ? image : "a program")) known = false;
    if (allowed != role && !mark(asker, allowed)) known = false;
    if (allowed == PROGRAM && !may_write_from_now(asker)) known = false;
    for (size_t at = 0; at < argv.count; at++) free(argv.items[at]);
    free(argv.items);
    free(image);
    free(cwd);
    free(input);
    return known;
}

static bool judge_files(const char *call, pid_t asker, const uint64_t *arguments, int *flags, int *channel) {
    bool at_folder = strstr(call, "at") != NULL && strcmp(call, "creat") != 0;
    int folder = at_folder ? (int)arguments[0] : HERE;
    char *path = path_of(asker, folder, arguments[at_folder ? 1 : 0]);
    bool known = path != NULL;
    if (known && starts_with(call, "rename")) {
        char *target = path_of(asker, at_folder ? (int)arguments[2] : HERE, arguments[at_folder ? 3 : 1]);
        known = target != NULL && rename_reward(asker, path, target);
        free(target);
    } else if (known && starts_with(call, "unlink")) {
        known = remove_reward(asker, path);
    } else if (known) {
        uint64_t chosen = arguments[at_folder ? 2 : 1];
        if (strcmp(call, "creat") == 0) chosen = O_WRONLY | O_CREAT | O_TRUNC;
        if (strcmp(call, "openat2") == 0) known = read_memory(asker, arguments[2], &chosen, sizeof chosen);
        *flags = (int)chosen;
        known = known && open_reward(asker, path, *flags, channel);
    }
    free(path);
    return known;
}

static void answer(const struct seccomp_notif *asked) {
    const char *call = settings.calls[asked->data.nr & 1023];
    pid_t asker = (pid_t)asked->pid;
    uint64_t arguments[6];
    int channel = -1, flags = 0, refusal = 0;
    for (int at = 0; at < 6; at++) arguments[at] = asked->data.args[at];
    if (call == NULL) {
        refusal = EPERM;
    } else if (starts_with(call, "exec")) {
        bool plain = strcmp(call, "execve") == 0;
        int folder = plain ? HERE : (int)arguments[0];
        if (!judge_start(asker, folder, arguments[plain ? 0 : 1], arguments[plain ? 1 : 2])) refusal = EPERM;
    } else if (starts_with(call, "open") || starts_with(call, "creat") || starts_with(call, "rename") ||
               starts_with(call, "unlink")) {
        if (!judge_files(call, asker, arguments, &flags, &channel)) refusal = 0;
    }
    if (channel >= 0) {
        struct seccomp_notif_addfd added = {
            .id = asked->id, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = (uint32_t)channel,
            .newfd_flags = (uint32_t)(flags & O_CLOEXEC)};
        ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
        close(channel);
    } else {
        struct seccomp_notif_resp response = {
            .id = asked->id, .error = -refusal, .flags = refusal ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
}

static bool asked_for(void) {
    struct epoll_event events[64];
    int count = epoll_wait(waiting, events, 64, 0);
    for (int at = 0; at < count; at++)
        if (listener >= 0 && events[at].data.fd == listener && events[at].events & EPOLLIN) return true;
    return false;
}

/* Read what was written and answer waiting processes. */
void serve_guard(void) {
    drain_rewards();
    while (asked_for()) {
        struct seccomp_notif asked;
        memset(&asked, 0, sizeof asked);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue; /* it was killed meanwhile */
        /* Writers ask once more when they are done, so that the next reader of the file finds what they wrote. */
        drain_rewards();
        answer(&asked);
    }
}

void report_guard(Bytes *into) {
    add_text(into, "{\"missing\": ");
    add_json(into, missing, strlen(missing));
    add_text(into, ", ");
    report_rewards(into);
    add_text(into, "}");
}

/* Release all resources; a process that still waits for an answer receives an error. */
void end_guard(void) {
    end_rewards();
    close(waiting);
    if (listener >= 0) close(listener);
    listener = waiting = -1;
}
