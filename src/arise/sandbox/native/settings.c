#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append(List *list, char *item) {
    list->items = claim(list->items, (list->count + 1) * sizeof *list->items);
    list->items[list->count++] = item;
}

bool holds(const List *list, const char *text) {
    for (size_t at = 0; at < list->count; at++)
        if (strcmp(list->items[at], text) == 0) return true;
    return false;
}

bool any_prefix(const List *list, const char *text) {
    for (size_t at = 0; at < list->count; at++)
        if (starts_with(text, list->items[at])) return true;
    return false;
}

static bool from_hex(const char *text, Bytes *into) {
    for (; text[0] && text[1]; text += 2) {
        unsigned value;
        if (sscanf(text, "%2x", &value) != 1) return false;
        char byte = (char)value;
        add(into, &byte, 1);
    }
    return *text == 0;
}

static List *list_named(Settings *in, const char *name) {
    struct {
        const char *name;
        List *list;
    } known[] = {{"system", &in->system}, {"added", &in->added},       {"wrapper", &in->wrappers},
                 {"tool", &in->tools},    {"scripted", &in->scripted}, {"shell", &in->shells},
                 {"python", &in->pythons}, {"other", &in->others},     {"pytest", &in->pytest}};
    for (size_t at = 0; at < sizeof known / sizeof *known; at++)
        if (strcmp(known[at].name, name) == 0) return known[at].list;
    return NULL;
}

/* Read lines of a name and a value; false if one is unknown, since a setting that is not honoured protects nothing. */
bool read_settings(const char *text, Settings *into) {
    memset(into, 0, sizeof *into);
    char *rest = NULL, *copy = format("%s", text);
    for (char *name = strtok_r(copy, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(name, ' ');
        if (value == NULL) return false;
        *value++ = 0;
        List *list = list_named(into, name);
        if (list != NULL) {
            append(list, value);
        } else if (strcmp(name, "logs") == 0) {
            into->logs = value;
        } else if (strcmp(name, "tests") == 0) {
            into->tests = value;
        } else if (strcmp(name, "limits") == 0) {
            if (!from_hex(value, &into->limits)) return false;
        } else if (strcmp(name, "notify") == 0) {
            if (!from_hex(value, &into->notify)) return false;
        } else if (strcmp(name, "call") == 0) {
            char *word = strchr(value, ' ');
            long number = atol(value);
            if (word == NULL || number < 0 || number >= 1024) return false;
            into->calls[number] = word + 1;
        } else {
            return false;
        }
    }
    return into->logs && into->tests && into->limits.size && into->notify.size;
}
