/* The server inside a sandbox, in C: the same protocol and rules as ../inside, whose docstrings give the reasons. */
#ifndef ARISE_SERVER_H
#define ARISE_SERVER_H
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* bytes.c: memory that never runs out without ending the process */
typedef struct {
    char *data; /* followed by a NUL, so that text can be used as a string */
    size_t size, room;
} Bytes;

void *claim(void *old, size_t size);
void add(Bytes *to, const void *data, size_t size);
void add_text(Bytes *to, const char *text);
void add_json(Bytes *to, const char *data, size_t size);
char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
bool read_file(const char *path, size_t most, Bytes *into);
const char *base_name(const char *path);
bool starts_with(const char *text, const char *prefix);
bool is_number(const char *text);

/* usage.c: resources of the processes inside, and a time limit that excludes waiting for a processor */
typedef struct {
    long threads;
    bool runnable;
    double processor_seconds;
} Usage;

typedef struct {
    double seconds, starved, ahead, began, looked;
    Usage usage;
} Allowance;

double now(void);
Usage usage(void);
int64_t private_memory(void);
Allowance allow(double seconds);
double time_left(const Allowance *allowance);
double next_look(const Allowance *allowance);
bool look(Allowance *allowance);

/* settings.c: what the guard is told, one `name value` per line */
typedef struct {
    char **items;
    size_t count;
} List;

typedef struct {
    char *logs, *tests;
    Bytes limits, notify;
    List system, added, wrappers, tools, scripted, shells, pythons, others, pytest;
    const char *calls[1024]; /* by system-call number */
} Settings;

bool read_settings(const char *text, Settings *into);
void append(List *list, char *item);
bool holds(const List *list, const char *text);
bool any_prefix(const List *list, const char *text);

/* asker.c: a process whose system call the kernel reports */
enum { NOBODY = 0, PROGRAM = 1, SHELL = 2 };
enum { HERE = -100 };

bool role_of_process(pid_t pid, int *role);
bool mark(pid_t pid, int role);
char *process_of(pid_t pid);
char *name_of(pid_t pid);
char *link_of(pid_t pid, const char *name); /* "" if it does not exist, NULL on any other error */
bool read_memory(pid_t pid, uint64_t address, void *into, size_t size);
char *text_of(pid_t pid, uint64_t address);
bool words_of(pid_t pid, uint64_t address, List *into);
char *path_of(pid_t pid, int folder, uint64_t address);
char *normal_path(const char *text);
bool hands_over(pid_t pid, ino_t inode, bool *answer);
bool anybody_else(void);

/* writers.c: which programs started by test.sh may write the reward */
typedef struct {
    const char *image;
    const List *argv;
    const char *cwd, *stdin_link;
} Start;

int role_of_start(const Start *start, const Settings *settings);
void forget_tests(void);
bool is_theirs(const char *image, const Settings *settings);

/* rewards.c: the reward files, as written by permitted processes */
void begin_rewards(const char *logs, int waiting);
bool may_write(pid_t asker, bool *answer);
bool open_reward(pid_t asker, const char *path, int flags, int *channel);
bool rename_reward(pid_t asker, const char *source, const char *target);
bool remove_reward(pid_t asker, const char *path);
bool hand_over(pid_t asker, const char *image);
bool may_write_from_now(pid_t asker);
void drain_rewards(void);
void report_rewards(Bytes *into);
void end_rewards(void);

/* guard.c: the supervisor of test.sh */
bool begin_guard(const char *settings);
pid_t spawn_guarded(const char *command, int output, const char *user);
int guard_descriptor(void);
void serve_guard(void);
void report_guard(Bytes *into);
void end_guard(void);
int become(const char *user);

/* container.c: the start inside a container */
int connect_to(const char *path);
bool enter_folder(char *path);

/* tools.c: what the program does outside of a sandbox */
int print_role(int count, char **words);
int prepare(int count, char **words);

#endif
