#include "server.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_TEXT_BYTES (1024 * 1024)
#define MAX_TEXTS 1000

static const char *INLINE = "-inline", *STDIN = "-stdin", *MODULE = "-module", *UNKNOWN = "-unknown";
static const char *PIPED = "\\|[[:space:]]*([^[:space:]]*/)?(python[0-9.]*|pypy3?|perl|ruby|node|(ba|da|z|k|a)?sh)"
                           "([[:space:]]+-[[:alnum:]_]*)*[[:space:]]*($|[;|&)])";

static int writes_known = -1, pipes_known = -1;

void forget_tests(void) { writes_known = pipes_known = -1; }

static bool own(const char *path, const Settings *settings) {
    size_t size = strlen(settings->tests);
    return strncmp(path, settings->tests, size) == 0 && path[size] == '/';
}

/* Read a small regular file; anything else reads as empty. */
static void read_text(const char *path, Bytes *into) {
    struct stat found;
    add_text(into, "");
    if (stat(path, &found) == 0 && S_ISREG(found.st_mode) && found.st_size <= MAX_TEXT_BYTES)
        read_file(path, MAX_TEXT_BYTES, into);
}

static void collect(const char *folder, List *into) {
    DIR *all = opendir(folder);
    if (all == NULL) return;
    for (struct dirent *entry; (entry = readdir(all));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char *path = format("%s/%s", folder, entry->d_name);
        struct stat found;
        if (lstat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
            collect(path, into);
            free(path);
        } else {
            append(into, path);
        }
    }
    closedir(all);
}

static int in_order(const void *first, const void *second) {
    return strcmp(*(char *const *)first, *(char *const *)second);
}

/* Return whether any test file besides test.sh mentions a reward and so may write it. */
static bool others_write(const Settings *settings) {
    if (writes_known >= 0) return writes_known;
    writes_known = 0;
    List paths = {0};
    char *main_test = format("%s/test.sh", settings->tests);
    collect(settings->tests, &paths);
    if (paths.count) qsort(paths.items, paths.count, sizeof *paths.items, in_order);
    for (size_t at = 0, seen = 0; at < paths.count && seen < MAX_TEXTS && !writes_known; at++) {
        if (strcmp(paths.items[at], main_test) == 0) continue;
        Bytes text = {0};
        read_text(paths.items[at], &text);
        writes_known = memmem(text.data, text.size, "reward", 6) != NULL;
        free(text.data);
        seen++;
    }
    free(main_test);
    return writes_known;
}

/* Return whether test.sh pipes code into an interpreter, which may be code of the attempt. */
static bool pipes_code(const Settings *settings) {
    if (pipes_known >= 0) return pipes_known;
    pipes_known = 1; /* unless the pattern says otherwise */
    regex_t piped;
    if (regcomp(&piped, PIPED, REG_EXTENDED | REG_NOSUB) != 0) return pipes_known;
    pipes_known = 0;
    Bytes text = {0};
    char *path = format("%s/test.sh", settings->tests), *rest = NULL;
    read_text(path, &text);
    for (size_t at = 0; at < text.size; at++)
        if (text.data[at] == 0) text.data[at] = '?';
    for (char *line = strtok_r(text.data, "\n\r", &rest); line && !pipes_known; line = strtok_r(NULL, "\n\r", &rest))
        pipes_known = line[strspn(line, " \t\f\v")] != '#' && regexec(&piped, line, 0, NULL, 0) == 0;
    regfree(&piped);
    free(path);
    free(text.data);
    return pipes_known;
}

/* Return where an interpreter gets its code; the letters are those of `code_of` in ../inside/writers.py. */
static const char *code_of(const List *argv, const char *in_line, const char *module, const char *valued,
                           const char *personal) {
    for (size_t at = 1; at < argv->count; at++) {
        const char *word = argv->items[at];
        if (strcmp(word, "-") == 0) return STDIN;
        if (strcmp(word, "--") == 0) return at + 1 < argv->count ? argv->items[at + 1] : STDIN;
        if (word[0] != '-' && word[0] != '+') return word;
        if (starts_with(word, "--")) {
            if (*personal && strcmp(word, "--login") == 0) return UNKNOWN;
            continue;
        }
        for (const char *letter = word + 1; *letter; letter++) {
            if (strchr(personal, *letter)) return UNKNOWN;
            if (strchr(in_line, *letter)) return INLINE;
            if (strchr(module, *letter)) return MODULE;
            if (strchr(valued, *letter)) {
                if (letter[1] == 0) at++;
                break;
            }
        }
    }
    return STDIN;
}

static const char *simple_code(const List *argv) {
    if (argv->count < 2) return STDIN;
    const char *word = argv->items[1];
    if (strcmp(word, "-e") == 0 || strcmp(word, "-E") == 0) return INLINE;
    return word[0] == '-' ? UNKNOWN : word;
}

/* Return whether standard input is a here-document: a pipe, or a file that bash has already removed. */
static bool is_document(const char *link) {
    static const char ending[] = " (deleted)";
    size_t size = strlen(link);
    if (strchr(link, '\n')) return false;
    if (starts_with(link, "pipe:")) return true;
    return starts_with(link, "/tmp/") && size >= 5 + sizeof ending - 1 &&
           strcmp(link + size - (sizeof ending - 1), ending) == 0;
}

static int by_code(const char *code, int role, const Start *start, const Settings *settings) {
    if (code == INLINE) return role;
    if (code == STDIN) {
        bool document = is_document(start->stdin_link) && !pipes_code(settings);
        return own(start->stdin_link, settings) || document ? role : NOBODY;
    }
    bool ours = code == MODULE;
    if (!ours && code != UNKNOWN) {
        char *whole = code[0] == '/' ? format("%s", code) : format("%s/%s", start->cwd, code);
        char *path = normal_path(whole);
        ours = own(path, settings);
        free(whole);
        free(path);
    }
    return ours && (role == SHELL || others_write(settings)) ? role : NOBODY;
}

/* Return the interpreter that the first line of a script names. */
static bool names_shell(const char *script, const Settings *settings) {
    Bytes text = {0};
    read_text(script, &text);
    if (text.size) text.data[strcspn(text.data, "\n")] = 0;
    char *rest = NULL, *first = strtok_r(text.data, " \t\r\f\v", &rest), *last = first;
    for (char *word; last && (word = strtok_r(NULL, " \t\r\f\v", &rest));) last = word;
    bool found = first && starts_with(first, "#!") && holds(&settings->shells, base_name(last));
    free(text.data);
    return found;
}

/* Return whether an option of sed or awk reads what it does from a file. */
static bool reads_script(const char *word) {
    if (starts_with(word, "--fi") || starts_with(word, "--ex")) return true;
    if (word[0] != '-') return false;
    for (word++; isalnum((unsigned char)*word) || *word == '_' || (unsigned char)*word >= 0x80; word++)
        if (*word == 'f' || *word == 'E') return true;
    return false;
}

int role_of_start(const Start *start, const Settings *settings) {
    const char *name = base_name(start->image);
    if (own(start->image, settings)) return names_shell(start->image, settings) ? SHELL : PROGRAM;
    if (!any_prefix(&settings->system, start->image)) return NOBODY;
    if (holds(&settings->wrappers, name)) return SHELL;
    if (holds(&settings->tools, name)) return PROGRAM;
    if (holds(&settings->scripted, name)) {
        for (size_t at = 1; at < start->argv->count; at++)
            if (reads_script(start->argv->items[at])) return NOBODY;
        return PROGRAM;
    }
    if (any_prefix(&settings->pytest, name)) return others_write(settings) ? PROGRAM : NOBODY;
    if (holds(&settings->shells, name)) return by_code(code_of(start->argv, "c", "", "oO", "li"), SHELL, start, settings);
    char language[NAME_MAX + 1];
    snprintf(language, sizeof language, "%s", name);
    size_t size = strlen(language);
    while (size && strchr("-.0123456789", language[size - 1])) language[--size] = 0;
    if (holds(&settings->pythons, language))
        return by_code(code_of(start->argv, "c", "m", "WX", ""), PROGRAM, start, settings);
    return holds(&settings->others, language) ? by_code(simple_code(start->argv), PROGRAM, start, settings) : NOBODY;
}

/* Return whether a program in a system folder belongs to the attempt, directly or through a link. */
bool is_theirs(const char *image, const Settings *settings) {
    char real[PATH_MAX], *folder = NULL, *resolved = NULL;
    bool theirs = holds(&settings->added, image);
    if (realpath(image, real) == NULL) { /* a search along PATH tries names that do not exist */
        struct stat found;
        if (lstat(image, &found) == 0) return true; /* a link to nothing, which might become something */
        folder = format("%.*s", (int)(base_name(image) - image), image);
        snprintf(real, sizeof real, "%s", image);
        if ((resolved = realpath(folder, NULL))) snprintf(real, sizeof real, "%.3800s/%.255s", resolved, base_name(image));
    }
    free(folder);
    free(resolved);
    theirs = theirs || holds(&settings->added, real);
    return theirs || (any_prefix(&settings->system, image) && !any_prefix(&settings->system, real));
}
