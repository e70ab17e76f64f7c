/* JSON that anybody may have written, read where it lies: it is looked through once for its form, and then asked for
 * members by name. Nothing is copied before it is wanted. libc only. */
#ifndef SANDBOX_SHIM_INSIDE_DIFF_SHIM_JSON_H
#define SANDBOX_SHIM_INSIDE_DIFF_SHIM_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum {
    JSON_DEEP = 64,      /* objects and arrays in each other */
    JSON_KEY_MAX = 1024, /* bytes of a name that can be asked for */
};

/* A value that is well-formed, without space around it. n == 0: there is none. Borrowed. */
struct value {
    const char *p;
    size_t n;
};

/* The one value that these bytes are. n == 0: they are none, or one that is deeper than JSON_DEEP. */
struct value json_whole(const char *p, size_t n);
bool json_is(struct value v, char kind); /* '{' '[' '"', or the first character of anything else */
/* The members of an object, or the elements of an array (whose keys are none), one after the other. *at: NULL to
 * begin with. False: that was all, or it is neither. */
bool json_next(struct value of, const char **at, struct value *key, struct value *v);
/* The member of that name, with its escapes opened. None where it is not there, and where it stands twice, or
 * in another case: then *twice is set (never cleared), for programs differ in which counts. */
struct value json_member(struct value of, const char *name, bool *twice);
/* Do both say the same, in whatever order and with whatever escapes? deep: 0. Not where the same name stands twice,
 * or is longer than JSON_KEY_MAX; in another case it is another name. */
bool json_same(struct value a, struct value b, unsigned deep);
/* A text with its escapes opened, ended by a zero. Its length; -1: it is no text, has a NUL in it, or is longer than
 * fits. */
long json_text(struct value v, char *to, size_t room);

#endif
