#include "proxy/judge/tickets/push_facts.h"

#include <stdio.h>
#include <time.h>

#include "common/id.h"
#include "proxy/judge/tickets/pack.h"

enum { SUBJECT_MAX = 200, NAME_MAX_BYTES = 120, REF_MAX = 200, LAST_ROWS = 1536, VALUE_MAX = 2048, PARENTS_MAX = 64 };

/* What the text of a commit or tag says of itself. */
struct told {
    struct span subject, name, mail;
    uint64_t time;
    int zone; /* minutes east */
    bool dated;
    unsigned parents;
};

bool fact_row(struct jsonw *w, size_t room, struct span label, struct span value)
{
    /* A byte becomes six at most. */
    if (w->out->n + 6 * (label.n + value.n) + 64 > room)
        return false;
    jsonw_object(w);
    jsonw_kv(w, "label", label);
    jsonw_kv(w, "value", value);
    jsonw_end_object(w);
    return true;
}

/* At most max bytes, and no half a character at the end. */
static struct span cut(struct span s, size_t max)
{
    struct span head = span_first(s, max);
    if (head.n == s.n)
        return s;
    for (size_t back = 0; back < 4 && back < head.n; back++) {
        struct span one = span_from(s, head.n - back);
        if ((one.p[0] & 0xc0) != 0x80) /* a character begins here */
            return span_first(s, head.n - back);
    }
    return head;
}

/* "Name <mail> 1700000000 +0100" */
static void read_person(struct span s, struct told *t)
{
    struct span rest, sign;
    uint64_t hhmm;
    (void)span_cut(s, '<', &t->name, &rest);
    (void)span_cut(rest, '>', &t->mail, &rest);
    t->name = span_trim(t->name);
    t->mail = span_trim(t->mail);
    rest = span_trim(rest);
    struct span when;
    if (!span_cut(rest, ' ', &when, &sign) || span_u64(when, 253402300799u, &t->time) != 0 || sign.n != 5)
        return;
    for (size_t i = 1; i < 5; i++)
        if (sign.p[i] < '0' || sign.p[i] > '9')
            return;
    hhmm = (uint64_t)(sign.p[1] - '0') * 10u + (uint64_t)(sign.p[2] - '0');
    t->zone = (int)(hhmm * 60 + (uint64_t)(sign.p[3] - '0') * 10u + (uint64_t)(sign.p[4] - '0'));
    t->zone = sign.p[0] == '-' ? -t->zone : t->zone;
    t->dated = sign.p[0] == '-' || sign.p[0] == '+';
}

static struct told read_text(const struct pack_entry *e)
{
    struct told t = {.parents = 0};
    struct span rest = e->text, line;
    while (span_cut(rest, '\n', &line, &rest) && line.n > 0) {
        if (span_starts(line, SPAN("parent ")))
            t.parents++;
        else if (span_starts(line, e->is_tag ? SPAN("tagger ") : SPAN("author ")) && t.name.p == NULL)
            read_person(span_from(line, 7), &t);
    }
    while (rest.n && t.subject.n == 0) {
        (void)span_cut(rest, '\n', &line, &rest);
        t.subject = span_trim(line);
    }
    return t;
}

static const struct pack_entry *find(const struct pack *p, struct span hex)
{
    uint8_t id[PACK_ID_MAX];
    if (hex_parse(hex, id, p->id_bytes) != 0)
        return NULL;
    for (size_t i = 0; i < p->nentries; i++)
        if (memcmp(id, p->entry[i].id, p->id_bytes) == 0)
            return &p->entry[i];
    return NULL;
}

/* Which entries the refs lead to, by parents and by what a tag points at. One that no ref leads to may have been put
 * there to be read in place of the real ones. */
struct reach {
    bool reached[PACK_LISTED_MAX];
    struct span ref[PACK_LISTED_MAX]; /* the first one that is set to it, or none */
    uint8_t queue[PACK_LISTED_MAX];
    size_t n;
};

static void reach_one(struct reach *r, const struct pack *p, struct span id, struct span ref)
{
    const struct pack_entry *e = find(p, id);
    size_t i = e ? (size_t)(e - p->entry) : PACK_LISTED_MAX;
    if (e == NULL || r->reached[i])
        return;
    r->reached[i] = true;
    r->ref[i] = ref;
    r->queue[r->n++] = (uint8_t)i;
}

static void reach(struct reach *r, const struct pack *p, const struct git_push *push)
{
    for (size_t i = 0; i < push->nrefs; i++)
        reach_one(r, p, push->refs[i].new_id, push->refs[i].name);
    for (size_t done = 0; done < r->n; done++) {
        const struct pack_entry *e = &p->entry[r->queue[done]];
        struct span rest = e->text, line, from = e->is_tag ? SPAN("object ") : SPAN("parent ");
        unsigned lines = 0;
        while (span_cut(rest, '\n', &line, &rest) && line.n > 0 && lines < PARENTS_MAX) {
            if (!span_starts(line, from))
                continue;
            reach_one(r, p, span_from(line, from.n), SPAN_NONE);
            lines++;
        }
    }
}

static size_t add_date(char *to, size_t room, const struct told *t)
{
    struct tm tm;
    time_t at = (time_t)t->time + t->zone * 60;
    int east = t->zone < 0 ? -t->zone : t->zone;
    if (!t->dated || gmtime_r(&at, &tm) == NULL)
        return 0;
    size_t n = strftime(to, room, ", %Y-%m-%d %H:%M ", &tm);
    int z = snprintf(to + n, room - n, "%c%02d%02d", t->zone < 0 ? '-' : '+', east / 60, east % 60);
    return z > 0 && (size_t)z < room - n ? n + (size_t)z : n;
}

/* "ID[ of REF]  subject  (Name <mail>, date, merge of 2)". Foreign bytes are copied, never formatted. */
static struct span describe(const struct pack *p, const struct pack_entry *e, struct span ref, char out[VALUE_MAX])
{
    struct told t = read_text(e);
    struct dynbuf b;
    char date[64], id[2 * PACK_ID_MAX + 1];
    hex_text(span_of(e->id, p->id_bytes), id);
    dynbuf_init(&b, VALUE_MAX);
    dynbuf_add(&b, span_str(id));
    if (ref.n) {
        dynbuf_add(&b, SPAN(" of "));
        dynbuf_add(&b, cut(ref, REF_MAX));
    }
    dynbuf_add(&b, SPAN("  "));
    dynbuf_add(&b, t.subject.n ? cut(t.subject, SUBJECT_MAX) : SPAN("no subject"));
    dynbuf_add(&b, t.subject.n > SUBJECT_MAX ? SPAN("...  (") : SPAN("  ("));
    dynbuf_add(&b, t.name.n ? cut(t.name, NAME_MAX_BYTES) : SPAN("nobody"));
    dynbuf_add(&b, SPAN(" <"));
    dynbuf_add(&b, cut(t.mail, NAME_MAX_BYTES));
    dynbuf_add_byte(&b, '>');
    dynbuf_add(&b, span_of(date, add_date(date, sizeof(date), &t)));
    if (t.parents > 1)
        dynbuf_addf(&b, ", merge of %u", t.parents);
    dynbuf_add_byte(&b, ')');
    size_t n = dynbuf_ok(&b) ? b.n : 0;
    memcpy(out, b.p, n);
    dynbuf_free(&b);
    return span_of(out, n);
}

/* Two passes: what the refs lead to, then what else is there. Returns how many rows are not there. */
static uint32_t list(struct jsonw *w, size_t room, const struct git_push *push, const struct pack *p)
{
    struct reach r = {.n = 0};
    uint32_t left_out = p->unlisted;
    char value[VALUE_MAX];
    reach(&r, p, push);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < p->nentries; i++) {
            const struct pack_entry *e = &p->entry[i];
            struct span label = SPAN("In the pack, but no ref leads to it");
            if (r.reached[i] != (pass == 0))
                continue;
            if (r.reached[i])
                label = e->is_tag ? SPAN("Tag") : r.ref[i].n ? SPAN("Tip commit") : SPAN("Commit");
            left_out += !fact_row(w, room, label, describe(p, e, r.ref[i], value));
        }
    return left_out;
}

static bool deletes(struct span id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] != '0')
            return false;
    return true;
}

static void absent_tips(struct jsonw *w, size_t room, const struct git_push *push, const struct pack *p)
{
    char value[VALUE_MAX];
    for (size_t i = 0; i < push->nrefs; i++) {
        const struct git_ref *r = &push->refs[i];
        if (deletes(r->new_id) || find(p, r->new_id) != NULL)
            continue;
        const char *why =
            p->unlisted || p->stopped ? "not among those listed here" : "already there, or not in this push";
        int n = snprintf(value, sizeof(value), "%.*s of %.*s: %s", SPAN_FMT(span_first(r->new_id, 64)),
                         SPAN_FMT(cut(r->name, REF_MAX)), why);
        if (n < 0 || !fact_row(w, room, SPAN("Tip commit"), span_of(value, (size_t)n)))
            return;
    }
}

static void totals(struct jsonw *w, size_t room, const struct pack *p, uint32_t left_out)
{
    char text[512];
    int n = 0;
    if (left_out > 0) {
        n = snprintf(text, sizeof(text), "Commits or tags that are not listed here: %u", left_out);
        (void)fact_row(w, room, SPAN("More"), span_of(text, (size_t)n));
    }
    n = snprintf(text, sizeof(text), "%u (commits %u, tags %u, trees %u, files %u, and %u as deltas of others)",
                 p->count, p->commits, p->tags, p->trees, p->blobs, p->deltas);
    (void)fact_row(w, room, SPAN("Objects"), span_of(text, (size_t)n));
    if (p->stopped != NULL) {
        n = snprintf(text, sizeof(text), "It was not read to its end: %s. There may be more in it.", p->stopped);
        (void)fact_row(w, room, SPAN("Pack"), span_of(text, (size_t)n));
    }
}

void push_facts(struct jsonw *w, size_t room, const struct git_push *push, struct span pack)
{
    struct pack p;
    if (pack.n == 0 || push->nrefs == 0 || room < LAST_ROWS)
        return;
    pack_init(&p, push->refs[0].new_id.n == 64);
    pack_read(&p, pack);
    uint32_t left_out = list(w, room - LAST_ROWS, push, &p);
    absent_tips(w, room - LAST_ROWS, push, &p);
    totals(w, room, &p, left_out);
    pack_free(&p);
}
