/* Where in a request a credential's value goes: its slot. In what is decided, shown, approved and recorded a mark
 * stands there, ~NAME~ with the credential's name; the carrier writes the value in its place. A header field and a
 * cookie need no mark, nor does a client certificate, which goes into no request. */
#ifndef COMMON_HTTP_SLOT_H
#define COMMON_HTTP_SLOT_H

#include "common/span.h"

enum slot_kind { SLOT_HEADER = 0, SLOT_COOKIE, SLOT_QUERY, SLOT_PATH, SLOT_FORM, SLOT_JSON, SLOT_KINDS };

/* Bytes of a target with a mark in it, at most; what HTTP_TARGET_MAX leaves is for the value. Both are asked for on
 * their own, so that no length of a request says how long a value is. */
enum { SLOT_TARGET_MAX = 8 * 1024 };

static inline bool slot_is_marked(enum slot_kind k)
{
    return k >= SLOT_QUERY;
}

static inline bool slot_in_body(enum slot_kind k)
{
    return k >= SLOT_FORM;
}

static inline size_t slot_mark_bytes(struct span name)
{
    return name.n + 2;
}

/* Does the mark of this credential stand there? */
static inline bool slot_has_mark(struct span text, size_t at, struct span name)
{
    struct span mark = at <= text.n ? span_first(span_from(text, at), slot_mark_bytes(name)) : SPAN_NONE;
    return mark.n == slot_mark_bytes(name) && mark.p[0] == '~' && mark.p[mark.n - 1] == '~' &&
           span_eq(span_first(span_from(mark, 1), name.n), name);
}

#endif
