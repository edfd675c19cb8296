#include "server.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *claim(void *old, size_t size) {
    void *found = realloc(old, size ? size : 1);
    if (found == NULL) _exit(1); /* the host sees the connection close */
    return found;
}

void add(Bytes *to, const void *data, size_t size) {
    if (to->size + size + 1 > to->room) {
        to->room = 2 * (to->size + size) + 64;
        to->data = claim(to->data, to->room);
    }
    memcpy(to->data + to->size, data, size);
    to->size += size;
    to->data[to->size] = 0;
}

void add_text(Bytes *to, const char *text) { add(to, text, strlen(text)); }

/* Add a JSON string with one character per byte. */
void add_json(Bytes *to, const char *data, size_t size) {
    add_text(to, "\"");
    for (size_t at = 0; at < size; at++) {
        unsigned char byte = (unsigned char)data[at];
        char escaped[8];
        if (byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\')
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        else
            snprintf(escaped, sizeof escaped, "%c", byte);
        add_text(to, escaped);
    }
    add_text(to, "\"");
}

char *format(const char *pattern, ...) {
    char *found = NULL;
    va_list values;
    va_start(values, pattern);
    int size = vasprintf(&found, pattern, values);
    va_end(values);
    if (size < 0) _exit(1);
    return found;
}

/* Read a file up to a size; false if it cannot be opened or read. */
bool read_file(const char *path, size_t most, Bytes *into) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    char part[4096];
    ssize_t got = 0;
    while (into->size < most && (got = read(file, part, sizeof part)) > 0) add(into, part, (size_t)got);
    close(file);
    add(into, "", 0);
    return got >= 0;
}

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

bool is_number(const char *text) {
    for (const char *at = text; *at; at++)
        if (!isdigit((unsigned char)*at)) return false;
    return *text != 0;
}
