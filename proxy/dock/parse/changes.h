/* What the shim says of a folder that is watched (TALK_FILE_WATCH of sandbox-shim/inside/shim_talk.h), a line a
 * change: a word, a blank, a path in which %XX is a byte. Nothing of it is trusted. Pure. */
#ifndef PROXY_DOCK_PARSE_CHANGES_H
#define PROXY_DOCK_PARSE_CHANGES_H

#include "common/span.h"

enum { CHANGE_PATH_MAX = 4095, CHANGE_LINE_MAX = 16 + 3 * CHANGE_PATH_MAX };

enum change_is {
    CHANGE_NONE = 0,
    CHANGE_WATCHES, /* from now on */
    CHANGE_MISSED,  /* more than could be kept, and no more is said */
    CHANGE_CREATED,
    CHANGE_WRITTEN,
    CHANGE_REMOVED,
    CHANGE_RENAMED,
    CHANGE_MODE,
    CHANGES
};
struct change {
    enum change_is what;
    size_t n;
    uint8_t path[CHANGE_PATH_MAX];
};

enum change_got { CHANGE_BAD = 0, CHANGE_MORE, CHANGE_TAKEN };
/* The line that in begins with; *used bytes are it. BAD: it is none, has no path and needs one, or the reverse. */
enum change_got change_take(struct span in, struct change *c, size_t *used) MUSTCHECK;
/* As envd calls what happened to an entry; NULL: nothing did. */
const char *change_type(enum change_is what);

#endif
