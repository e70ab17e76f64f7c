/* Is this text a module as policy_typescript writes them, and nothing more? Whatever a policy says may stand in its
 * strings and comments alone: between them only these words, and all that opens is closed. */
#ifndef TESTS_TS_MODULE_H
#define TESTS_TS_MODULE_H

#include <ctype.h>

#include "common/span.h"

static inline bool ts_word_known(struct span s)
{
    static const char *const known[] = {
        "export", "interface", "Operations", "decision", "path",    "query",    "headers",   "body", "json",
        "form",   "type",      "string",     "number",   "unknown", "never",    "undefined", "name", "true",
        "false",  "const",     "decisions",  "Texts",    "K",       "readonly", "in",        "keyof"};
    bool digits = true;
    for (size_t i = 0; i < s.n; i++)
        digits &= isdigit(s.p[i]) != 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_eq(s, span_str(known[i])))
            return true;
    return digits;
}

/* Behind the string or comment that begins at i; 0: it does not end, or has bytes that it may not have. */
static inline size_t ts_skip(struct span s, size_t i)
{
    if (s.p[i] == '"') {
        for (i++; i < s.n && s.p[i] != '"'; i++) {
            if (s.p[i] < 0x20 || s.p[i] >= 0x7f)
                return 0;
            i += s.p[i] == '\\';
        }
        return i < s.n ? i + 1 : 0;
    }
    bool line = s.p[i + 1] == '/';
    struct span rest = span_from(s, i + 2);
    size_t end = line ? span_index(rest, '\n') : span_find(rest, SPAN("*/"));
    struct span in = span_first(rest, end);
    if (end == rest.n || span_index(in, '\r') < in.n || span_index(in, '\n') < in.n ||
        span_find(in, SPAN("\xe2\x80\xa8")) < in.n || span_find(in, SPAN("\xe2\x80\xa9")) < in.n)
        return 0;
    return i + 2 + end + (line ? 1 : 2);
}

static inline bool ts_module_holds(struct span s)
{
    size_t tail = span_find(s, SPAN("\nexport type Operation = keyof Operations;\n"));
    int open = 0;
    if (tail == s.n)
        return false;
    s = span_first(s, tail + 1);
    for (size_t i = 0; i < s.n;) {
        bool comment = s.p[i] == '/' && i + 1 < s.n && (s.p[i + 1] == '/' || s.p[i + 1] == '*');
        if (s.p[i] == '"' || comment) {
            i = ts_skip(s, i);
            if (i == 0)
                return false;
        } else if (isalnum(s.p[i]) || s.p[i] == '_') {
            size_t n = 0;
            while (i + n < s.n && (isalnum(s.p[i + n]) || s.p[i + n] == '_'))
                n++;
            if (!ts_word_known(span_first(span_from(s, i), n)))
                return false;
            i += n;
        } else {
            if (s.p[i] == 0 || !strchr(" \n:;,|&{}[]=?", s.p[i]))
                return false;
            open += s.p[i] == '{' ? 1 : s.p[i] == '}' ? -1 : 0;
            if (open < 0)
                return false;
            i++;
        }
    }
    return open == 0;
}

#endif
