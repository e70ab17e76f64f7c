#include "web-approval/reading/parts.h"

#include "common/id.h"

static size_t alike(const struct reading *r, const char *words)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nflags; i++)
        n += r->flag[i].words == words;
    return n;
}

void flag_add(struct reading *r, const char *words, struct span name, struct span value)
{
    if (r->nflags == READING_FLAGS || alike(r, words) >= READING_ALIKE) {
        r->more++;
        return;
    }
    r->flag[r->nflags++] = (struct flag){words, name, value, false};
}

void flag_block(struct reading *r, const char *words, struct span name, struct span value)
{
    r->blocks = true;
    if (r->nflags == READING_FLAGS) { /* what blocks is told, whatever else is not */
        r->nflags--;
        r->more++;
    }
    r->flag[r->nflags++] = (struct flag){words, name, value, true};
}

void reading_flag(struct reading *r, const char *words, struct span name, struct span value)
{
    flag_add(r, words, name, value);
}

void reading_block(struct reading *r, const char *words, struct span name, struct span value)
{
    flag_block(r, words, name, value);
}

void reading_look(struct reading *r, struct span name, struct span text)
{
    text_look(r, name, text);
}

static bool has_word(struct span s, const char *const *words, size_t n)
{
    for (size_t w = 0; w < n; w++) {
        struct span word = span_str(words[w]);
        for (size_t i = 0; i + word.n <= s.n; i++)
            if (span_ieq(span_of(s.p + i, word.n), word))
                return true;
    }
    return false;
}

/* "%2f" in either case, at s. */
static bool escape_is(struct span s, const char *hex)
{
    return s.n >= 3 && s.p[0] == '%' && span_ieq(span_of(s.p + 1, 2), span_str(hex));
}

static void path(struct reading *r)
{
    struct span rest = r->asked->path, segment;
    bool slash = false, twice = false, deletes = false;
    struct dynbuf b;

    for (size_t i = 0; i < rest.n; i++) {
        struct span at = span_from(rest, i);
        slash |= escape_is(at, "2f") || escape_is(at, "5c");
        twice |= escape_is(at, "25") && hex_number(span_from(at, 3), 2) >= 0;
    }
    if (slash)
        flag_add(r, "The path has an encoded slash: to some servers it is one step more", SPAN_NONE, r->asked->path);
    if (twice)
        flag_add(r, "The path is encoded twice: servers differ in what they read", SPAN_NONE, r->asked->path);
    dynbuf_init(&b, r->asked->path.n + 1);
    for (bool more = true; more;) {
        more = span_cut(rest, '/', &segment, &rest);
        deletes |= text_deletes(segment);
        dynbuf_reset(&b);
        for (size_t i = 0; i < segment.n; i++) {
            int v = segment.p[i] == '%' ? hex_number(span_from(segment, i + 1), 2) : -1;
            (void)dynbuf_add_byte(&b, v < 0 ? segment.p[i] : (uint8_t)v);
            i += v < 0 ? 0 : 2;
        }
        text_look(r, SPAN("path"), arena_copy(r->arena, dynbuf_span(&b)));
    }
    dynbuf_free(&b);
    if (deletes && !span_eq(r->asked->effect, SPAN("delete")) && !span_ieq(r->asked->method, SPAN("delete")))
        flag_add(r, "It asks to delete, though its method does not say so", SPAN("path"), r->asked->path);
}

static void fields(struct reading *r)
{
    static const char *const others[] = {"x-http-method-override", "x-http-method", "x-method-override"};
    const struct json *list = r->asked->fields;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        struct span name = f->child ? f->child->text : SPAN_NONE;
        struct span value = f->child && f->child->next ? f->child->next->text : SPAN_NONE;
        text_look(r, name, value);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            if (span_ieq(name, span_str(others[i])))
                flag_add(r, "A field asks for another method than the one that was judged", name, value);
    }
}

static void facts(struct reading *r)
{
    const struct json *list = r->asked->facts;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        struct span label = json_text(f, SPAN("label")), value = json_text(f, SPAN("value"));
        text_look(r, label, value);
        if (span_eq(label, SPAN("Delete")) && !span_eq(r->asked->effect, SPAN("delete")))
            flag_add(r, "It deletes this", SPAN_NONE, value);
    }
}

/* What the agent says is not believed; but what it says against the facts, or in this page's voice, is worth a line.
 */
static void reason(struct reading *r)
{
    static const char *const harmless[] = {
        "read-only",  "read only",           "only read",       "just read",  "only look",
        "no changes", "not change anything", "changes nothing", "dry run",    "dry-run",
        "harmless",   "nothing changes",     "no effect",       "only check", "does nothing"};
    static const char *const ours[] = {"approved",      "countersign",    "approve this", "verified by",
                                       "policy allows", "pre-approve",    "no approval",  "your decision",
                                       "what it does",  "safe to approve"};
    struct span s = r->asked->reason;
    size_t before = r->nflags;

    text_look(r, SPAN("reason"), s);
    for (size_t i = before; i < r->nflags; i++)
        r->flag[i].value = SPAN_NONE; /* its words stand where the page fences them, and nowhere above the facts */
    if (!span_eq(r->asked->effect, SPAN("read")) && has_word(s, harmless, sizeof harmless / sizeof harmless[0]))
        flag_add(r, "The agent's reason says that nothing is changed; the facts say", SPAN_NONE, r->asked->effect);
    if (has_word(s, ours, sizeof ours / sizeof ours[0]))
        flag_add(r, "The agent's reason speaks as this page does: it is the agent's word alone", SPAN_NONE,
                 SPAN_NONE);
}

size_t reading_packages(const struct reading *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->npictures; i++)
        n += r->picture[i].package;
    return n;
}

size_t reading_pictures(const struct reading *r)
{
    return r->npictures - reading_packages(r);
}

void reading_make(const struct asked *q, struct arena *a, struct reading *r)
{
    *r = (struct reading){.arena = a, .asked = q, .text = q->body};
    host_look(r);
    path(r);
    if (q->query.n)
        form_read(r, q->query, false);
    fields(r);
    facts(r);
    if (q->body.n)
        body_read(r);
    r->whole = q->body.n == 0 || (r->kind && !r->together && !r->files && reading_pictures(r) == 0 &&
                                  r->nsaid == r->values && !r->blocks);
    reason(r);
    if (a->used + READING_REST > a->max) /* what it could not take apart nobody looked at */
        flag_block(r, "The request has more in it than is taken apart here", SPAN_NONE, SPAN_NONE);
}
