#include "server.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define TICK_SECONDS 0.1
#define MAX_STRETCH 4.0

double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Split what follows the last ")" of a process's file into fields; return their number, 0 if it is gone. */
static int fields(const char *path, char *text, size_t room, char **found, int most) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    size_t size = fread(text, 1, room - 1, file);
    fclose(file);
    text[size] = 0;
    char *after = strrchr(text, ')'), *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(after ? after + 1 : text, " \n", &rest); word && count < most;
         word = strtok_r(NULL, " \n", &rest))
        found[count++] = word;
    return count;
}

/* Call `visit` with the folder of every process but this one. */
static void each_process(void (*visit)(const char *folder, void *into), void *into) {
    DIR *all = opendir("/proc");
    if (all == NULL) return;
    char own[16], folder[64];
    snprintf(own, sizeof own, "%d", getpid());
    for (struct dirent *entry; (entry = readdir(all));)
        if (is_number(entry->d_name) && strcmp(entry->d_name, own) != 0) {
            snprintf(folder, sizeof folder, "/proc/%.20s", entry->d_name);
            visit(folder, into);
        }
    closedir(all);
}

static bool any_thread_runs(const char *folder) {
    char path[128], text[1024], *found[1];
    snprintf(path, sizeof path, "%s/task", folder);
    DIR *threads = opendir(path);
    if (threads == NULL) return false;
    bool runs = false;
    for (struct dirent *entry; !runs && (entry = readdir(threads));)
        if (is_number(entry->d_name)) {
            snprintf(path, sizeof path, "%s/task/%.20s/stat", folder, entry->d_name);
            runs = fields(path, text, sizeof text, found, 1) == 1 && strcmp(found[0], "R") == 0;
        }
    closedir(threads);
    return runs;
}

static void count_process(const char *folder, void *into) {
    Usage *sum = into;
    char path[128], text[1024], *found[18];
    snprintf(path, sizeof path, "%s/stat", folder);
    if (fields(path, text, sizeof text, found, 18) < 18) return;
    long threads = atol(found[17]);
    double ticks = 0;
    for (int at = 11; at < 15; at++) ticks += atof(found[at]);
    sum->threads += threads;
    sum->processor_seconds += ticks / (double)sysconf(_SC_CLK_TCK);
    if (!sum->runnable) sum->runnable = strcmp(found[0], "R") == 0 || (threads > 1 && any_thread_runs(folder));
}

Usage usage(void) {
    struct tms dead;
    times(&dead);
    Usage found = {0, false, (double)(dead.tms_cutime + dead.tms_cstime) / (double)sysconf(_SC_CLK_TCK)};
    each_process(count_process, &found);
    return found;
}

static void count_memory(const char *folder, void *into) {
    char path[128], text[1024], *found[3];
    snprintf(path, sizeof path, "%s/statm", folder);
    if (fields(path, text, sizeof text, found, 3) == 3) *(int64_t *)into += atoll(found[1]) - atoll(found[2]);
}

int64_t private_memory(void) {
    int64_t pages = 0;
    each_process(count_memory, &pages);
    return pages * sysconf(_SC_PAGESIZE);
}

Allowance allow(double seconds) {
    double at = now();
    return (Allowance){seconds, 0, 0, at, at, usage()};
}

double time_left(const Allowance *allowance) {
    double limit = allowance->seconds + allowance->starved;
    if (limit > allowance->seconds * MAX_STRETCH) limit = allowance->seconds * MAX_STRETCH;
    return allowance->began + limit - now();
}

double next_look(const Allowance *allowance) {
    double left = time_left(allowance), tick = allowance->looked + TICK_SECONDS - now();
    double next = left < tick ? left : tick;
    return next > 0 ? next : 0;
}

/* Update the limit, at most once a tick before its end; return whether it was updated. */
bool look(Allowance *allowance) {
    double at = now(), elapsed = at - allowance->looked;
    if (elapsed < TICK_SECONDS && time_left(allowance) > 0) return false;
    Usage before = allowance->usage;
    allowance->usage = usage();
    allowance->looked = at;
    if (allowance->usage.runnable) {
        double ran = allowance->usage.processor_seconds - before.processor_seconds;
        double missed = elapsed - (ran > 0 ? ran : 0) + allowance->ahead, coarse = 2.0 / (double)sysconf(_SC_CLK_TCK);
        if (missed > 0) allowance->starved += missed;
        allowance->ahead = missed > 0 ? 0 : missed < -coarse ? -coarse : missed;
    }
    return true;
}
