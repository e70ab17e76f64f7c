/* The commands of a push (git's pack protocol, "Reference Update Request"):
 *
 *      pkt-line( old SP new SP name NUL capabilities )
 *      pkt-line( old SP new SP name ) ...
 *      flush
 *      [ push options: pkt-line(text) ... flush ]     when that capability was chosen
 *      [ "PACK" ... ]                                 absent when every command deletes
 *
 * Everything before the pack is read strictly; what is not exactly this is not
 * a push that anybody could decide on. A signed push (push-cert) is refused. */
#include "policy/body/parsers.h"

#include <stdio.h>

#include "common/id.h"

struct pkt {
    struct span in; /* what is left */
    size_t used;
};

enum pkt_kind { PKT_BAD = 0, PKT_LINE, PKT_FLUSH };

static enum pkt_kind pkt_next(struct pkt *k, struct span *line)
{
    int n = hex_number(k->in, 4);
    size_t used = n <= 0 ? 4 : (size_t)n;
    if (n < 0 || (n > 0 && n <= 4) || used > k->in.n || n > 65520)
        return PKT_BAD;
    *line = n == 0 ? SPAN_NONE : span_of(k->in.p + 4, used - 4);
    k->in = span_from(k->in, used);
    k->used += used;
    if (k->used > PUSH_COMMANDS_MAX)
        return PKT_BAD;
    return n == 0 ? PKT_FLUSH : PKT_LINE;
}

static bool is_object_id(struct span s)
{
    if (s.n != 40 && s.n != 64)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (hex_digit(s.p[i]) < 0 || (s.p[i] >= 'A' && s.p[i] <= 'F'))
            return false;
    return true;
}

/* git check-ref-format, and below refs/ only. */
static bool is_ref_name(struct span s)
{
    if (s.n > 1024 || !span_starts(s, SPAN("refs/")) || span_ends(s, SPAN(".")) || span_ends(s, SPAN("/")))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i], next = i + 1 < s.n ? s.p[i + 1] : 0;
        if (c <= 0x20 || c == 0x7f || memchr("~^:?*[\\", c, 7) != NULL)
            return false;
        if ((c == '.' && next == '.') || (c == '@' && next == '{') || (c == '/' && (next == '/' || next == '.')))
            return false;
    }
    for (struct span rest = s; rest.n;) {
        struct span part = span_first(rest, span_index(rest, '/'));
        if (span_ends(part, SPAN(".lock")))
            return false;
        rest = span_from(rest, part.n + 1);
    }
    return true;
}

static bool has_capability(struct span caps, struct span name)
{
    while (caps.n) {
        struct span one = span_first(caps, span_index(caps, ' '));
        if (span_eq(one, name))
            return true;
        caps = span_from(caps, one.n + 1);
    }
    return false;
}

static int parse_command(struct span line, struct git_ref *ref)
{
    if (line.n && line.p[line.n - 1] == '\n')
        line.n--;
    size_t id = span_index(line, ' ');
    ref->old_id = span_first(line, id);
    struct span rest = span_from(line, id + 1);
    ref->new_id = span_first(rest, id);
    ref->name = span_from(rest, id + 1);
    if (!is_object_id(ref->old_id) || !is_object_id(ref->new_id) || rest.n <= id || rest.p[id] != ' ')
        return -1;
    if (git_id_is_zero(ref->old_id) && git_id_is_zero(ref->new_id))
        return -1;
    return is_ref_name(ref->name) ? 0 : -1;
}

static bool named_before(const struct git_ref *refs, size_t n, struct span name)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq(refs[i].name, name))
            return true;
    return false;
}

/* Count first, so that the arena holds exactly what is there. */
static size_t count_lines(struct span in)
{
    struct pkt k = {in, 0};
    struct span line;
    size_t n = 0;
    while (pkt_next(&k, &line) == PKT_LINE)
        n++;
    return n;
}

struct push_parse {
    struct git_ref *refs;
    size_t n, max;
    struct span caps;
    bool all_delete;
};

static int parse_lines(struct pkt *k, struct push_parse *s)
{
    struct span line;
    enum pkt_kind kind;
    while ((kind = pkt_next(k, &line)) == PKT_LINE) {
        struct span caps = SPAN_NONE;
        if (s->n == 0 && span_starts(line, SPAN("shallow "))) {
            struct span id = span_from(line, 8);
            id.n -= id.n && id.p[id.n - 1] == '\n';
            if (!is_object_id(id))
                return -1;
            continue;
        }
        if (s->n == 0 && span_cut(line, 0, &line, &caps)) {
            caps.n -= caps.n && caps.p[caps.n - 1] == '\n';
            s->caps = caps;
        }
        if (s->n == s->max || s->n == PUSH_REFS_MAX || parse_command(line, &s->refs[s->n]) != 0)
            return -1;
        if (named_before(s->refs, s->n, s->refs[s->n].name))
            return -1;
        s->all_delete &= git_id_is_zero(s->refs[s->n].new_id);
        s->n++;
    }
    return kind == PKT_FLUSH && s->n > 0 ? 0 : -1;
}

static int parse_options(struct pkt *k, struct span caps)
{
    struct span line;
    enum pkt_kind kind = PKT_FLUSH;
    if (has_capability(caps, SPAN("push-options")))
        while ((kind = pkt_next(k, &line)) == PKT_LINE)
            ;
    return kind == PKT_FLUSH ? 0 : -1;
}

/* In a row of facts ids stand whole: two commits that begin alike must not look alike. */
static struct span words(struct arena *a, bool whole, const struct git_ref *r)
{
    size_t max = r->name.n + r->old_id.n + r->new_id.n + 64;
    char *dst = arena_alloc(a, max);
    if (dst == NULL)
        return SPAN_NONE;
    bool creates = git_id_is_zero(r->old_id), deletes = git_id_is_zero(r->new_id);
    struct span from = span_first(creates ? SPAN("nothing") : r->old_id, whole ? 64 : 7);
    struct span to = span_first(deletes ? SPAN("nothing") : r->new_id, whole ? 64 : 7);
    int n = snprintf(dst, max, "%.*s %.*s -> %.*s", SPAN_FMT(r->name), SPAN_FMT(from), SPAN_FMT(to));
    return span_of(dst, n > 0 ? (size_t)n : 0);
}

static int describe(struct arena *a, struct span resource, struct body_found *found, const struct push_parse *s)
{
    struct fact *facts = arena_alloc(a, (s->n + 1) * sizeof(*facts));
    struct member *members = arena_alloc(a, s->n * sizeof(*members));
    struct span repo = span_from(resource, span_index(resource, ':') + 1);
    struct span first = words(a, false, &s->refs[0]);
    size_t max = repo.n + first.n + 64;
    char *dst = arena_alloc(a, max);
    if (facts == NULL || members == NULL || dst == NULL || first.n == 0)
        return -1;
    facts[0] = (struct fact){SPAN("Repository"), repo};
    for (size_t i = 0; i < s->n; i++) {
        const struct git_ref *r = &s->refs[i];
        bool creates = git_id_is_zero(r->old_id), deletes = git_id_is_zero(r->new_id);
        facts[i + 1].label = creates ? SPAN("Create") : deletes ? SPAN("Delete") : SPAN("Update");
        facts[i + 1].value = words(a, true, r);
        if (facts[i + 1].value.n == 0)
            return -1;
        /* Whether an update is forced cannot be known without walking history: it counts as forced. */
        members[i] = (struct member){r->name, !creates, deletes};
    }
    int n = s->n == 1 ? snprintf(dst, max, "Push 1 ref to %.*s: %.*s", SPAN_FMT(repo), SPAN_FMT(first))
                      : snprintf(dst, max, "Push %zu refs to %.*s: %.*s, ...", s->n, SPAN_FMT(repo), SPAN_FMT(first));
    if (n < 0 || (size_t)n >= max)
        return -1;
    found->summary = span_of(dst, (size_t)n);
    found->facts = facts;
    found->nfacts = s->n + 1;
    found->members = members;
    found->nmembers = s->n;
    return 0;
}

static void fill_push(struct git_push *push, const struct push_parse *s)
{
    *push = (struct git_push){.refs = s->refs, .nrefs = s->n};
    push->report_status_v2 = has_capability(s->caps, SPAN("report-status-v2"));
    push->report_status = push->report_status_v2 || has_capability(s->caps, SPAN("report-status"));
    push->side_band = has_capability(s->caps, SPAN("side-band-64k"));
}

const char *body_git_find(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                          struct body_found *found)
{
    (void)v;
    if (span_eq(r->body, SPAN("0000")) && span_eq(r->method, SPAN("POST")) &&
        span_ends(r->path, SPAN("/git-receive-pack")) && r->query.n == 0) {
        /* Before a push over 1 MiB git asks with an empty one whether it may (B39). A DELETE or a PUT with
         * such a body is no such question. */
        found->asks = SPAN("git.push.probe");
        found->join = r->body;
        return NULL;
    }
    struct pkt k = {r->body, 0};
    struct push_parse s = {.max = count_lines(r->body), .all_delete = true};
    struct git_push *push = arena_alloc(a, sizeof(*push));
    if (s.max == 0 || s.max > 2 * PUSH_REFS_MAX)
        return "unclassified";
    s.refs = arena_alloc(a, s.max * sizeof(*s.refs));
    if (push == NULL || s.refs == NULL)
        return "no-memory";
    if (parse_lines(&k, &s) != 0 || parse_options(&k, s.caps) != 0)
        return "unclassified";
    if (s.all_delete ? k.in.n != 0 : !span_starts(k.in, SPAN("PACK")))
        return "unclassified";
    fill_push(push, &s);
    found->push = push;
    found->join = span_first(r->body, k.used);
    return describe(a, resource, found, &s) == 0 ? NULL : "no-memory";
}
