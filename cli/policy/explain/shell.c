/* The words of a command line, as a POSIX shell (and bash's $'...') would part them. Nothing is expanded or run. */
#include "cli/policy/explain/explain.h"

#include <stdio.h>

#include "common/id.h"
#include "common/text/utf8.h"

struct reader {
    struct span in;
    size_t at;
    struct dynbuf word;
    bool begun; /* a word: an empty one too, '' */
    const char *why;
    bool variable; /* a $NAME was left as it is */
};

static int peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->in.n ? r->in.p[r->at + ahead] : -1;
}

static bool fail(struct reader *r, const char *why)
{
    r->why = why;
    return false;
}

static void put(struct reader *r, int c)
{
    (void)dynbuf_add_byte(&r->word, (uint8_t)c);
    r->begun = true;
}

static bool single_quoted(struct reader *r)
{
    r->begun = true;
    for (r->at++; peek(r, 0) != '\''; r->at++) {
        if (peek(r, 0) < 0)
            return fail(r, "a ' has no partner");
        put(r, peek(r, 0));
    }
    r->at++;
    return true;
}

/* A variable stays as it is written: what it would be is not known here. A command is not run. */
static bool dollar(struct reader *r)
{
    if (peek(r, 1) == '(')
        return fail(r, "$(...) is not run here: write what it would give");
    r->variable = true;
    put(r, '$');
    r->at++;
    return true;
}

static bool double_quoted(struct reader *r)
{
    r->begun = true;
    r->at++;
    for (;;) {
        int c = peek(r, 0);
        if (c < 0)
            return fail(r, "a \" has no partner");
        if (c == '`')
            return fail(r, "`...` is not run here: write what it would give");
        if (c == '$') {
            if (!dollar(r))
                return false;
            continue;
        }
        r->at++;
        if (c == '"')
            return true;
        int next = peek(r, 0);
        if (c != '\\' || next < 0 || memchr("$`\"\\\n", next, 5) == NULL) {
            put(r, c);
            continue;
        }
        if (next != '\n')
            put(r, next);
        r->at++;
    }
}

/* Half of a surrogate pair is no character; as in bash it goes as it is, and the server, or the policy, refuses it.
 */
static void put_character(struct reader *r, unsigned c)
{
    uint8_t to[4];
    for (size_t i = 0, n = utf8_put(c, to); i < n; i++)
        put(r, to[i]);
}

/* $'...': what browsers write when there is a quote or a control character in it. */
static bool ansi_quoted(struct reader *r)
{
    static const char from[] = "nrtabfv\\'\"?", into[] = "\n\r\t\a\b\f\v\\'\"?";
    r->begun = true;
    for (r->at += 2; peek(r, 0) != '\''; r->at++) {
        int c = peek(r, 0);
        if (c < 0)
            return fail(r, "a $' has no partner");
        if (c != '\\') {
            put(r, c);
            continue;
        }
        c = peek(r, 1);
        r->at++;
        const char *known = c > 0 ? memchr(from, c, sizeof(from) - 1) : NULL;
        unsigned v = 0, n = 0, most = c == 'u' ? 4 : c == 'x' ? 2 : 0;
        while (n < most && hex_digit((uint8_t)peek(r, 1 + n)) >= 0)
            v = v * 16 + (unsigned)hex_digit((uint8_t)peek(r, 1 + n++));
        r->at += n;
        if (known)
            put(r, into[known - from]);
        else if (n && c == 'u')
            put_character(r, v);
        else if (n)
            put(r, (int)v);
        else
            return fail(r, "an escape in $'...' that is not known here");
    }
    r->at++;
    return true;
}

/* One step outside of quotes; *end: the word is over. */
static bool step(struct reader *r, bool *end)
{
    int c = peek(r, 0), next = peek(r, 1);
    if (c == '\'')
        return single_quoted(r);
    if (c == '"')
        return double_quoted(r);
    if (c == '$' && next == '\'')
        return ansi_quoted(r);
    if (c == '$' && next > ' ')
        return dollar(r);
    if (c == '\\' && next >= 0) {
        if (next == '\r' && peek(r, 2) == '\n')
            r->at++;
        else if (next != '\n')
            put(r, next);
        r->at += 2;
        return true;
    }
    if (memchr("|;<>()`", c, 7) || c == '&')
        return fail(r, "it goes on after a | ; & < > ( or `: give the curl command alone, with quotes round its URL");
    *end = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!*end)
        put(r, c);
    r->at++;
    return true;
}

int shell_words(struct span line, struct arena *a, struct span *out, size_t max, bool *variable, struct err *e)
{
    struct reader r = {.in = line};
    size_t n = 0;
    dynbuf_init(&r.word, line.n + 1);
    while (r.why == NULL && (r.at < line.n || r.begun)) {
        bool end = r.at == line.n;
        if (!end && !step(&r, &end))
            break;
        if (!end || !r.begun)
            continue;
        if (n == max)
            r.why = "it has too many words";
        else
            out[n++] = r.word.n ? arena_copy(a, dynbuf_span(&r.word)) : SPAN("");
        dynbuf_reset(&r.word);
        r.begun = false;
    }
    dynbuf_free(&r.word);
    *variable = r.variable;
    return r.why ? err_set(e, "the command line is not understood: %s", r.why) : (int)n;
}
