/* What a request says, as it was taken apart: what is apt to deceive, and the values of its body. */
#include "policy/policy.h"
#include "web-approval/page/page.h"
#include "web-approval/pictures/pictures.h"

enum { FLAG_NAME_SHOWN = 120, FLAG_VALUE_SHOWN = 240, VALUE_SHOWN = 400, HOSTS_KNOWN = 100 };

/* The hosts that credentials go to, by the policy in force; of a wildcard nobody knows which they are. */
static size_t known_hosts(const struct desk *d, struct span *out, size_t max)
{
    struct credential_place at;
    struct credential c;
    size_t n = 0;

    for (size_t i = 0; d->policy && policy_credential(d->policy, i, &c); i++)
        for (size_t j = 0; n < max && policy_credential_place(d->policy, i, j, &at); j++)
            if (span_index(at.host, '*') == at.host.n)
                out[n++] = at.host;
    return n;
}

void page_read(struct exchange *x, struct view *v, struct arena *a)
{
    const struct ticket *t = &v->t;

    v->asked = (struct asked){.method = t->method,
                              .host = t->host,
                              .path = t->path,
                              .query = t->has_query ? t->query : SPAN_NONE,
                              .effect = t->effect,
                              .reason = t->agent_reason,
                              .fields = json_parse(t->fields_json, a),
                              .facts = json_parse(t->facts_json, a),
                              .body = v->bytes,
                              .cut = v->bytes.n < t->body_size,
                              .all = v->all};
    struct span *known = arena_alloc(a, HOSTS_KNOWN * sizeof *known);
    v->asked.known = known;
    v->asked.nknown = known ? known_hosts(x->desk, known, HOSTS_KNOWN) : 0;
    reading_make(&v->asked, a, &v->r);
    if (v->looked)
        pictures_flag(x, v);
}

static void flag(struct exchange *x, const struct flag *f)
{
    struct dynbuf *out = &x->out;

    (void)dynbuf_addf(out, "<li%s>", f->blocks ? " class=\"blocks\"" : "");
    if (f->name.n) {
        PUT(x, "<b class=\"mono\">");
        show_cut(out, f->name, FLAG_NAME_SHOWN);
        PUT(x, "</b>: ");
    }
    show_own(out, f->words);
    if (f->value.n) {
        PUT(x, " <q class=\"mono\">");
        show_cut(out, f->value, FLAG_VALUE_SHOWN);
        PUT(x, "</q>");
    }
    PUT(x, "</li>\n");
}

void page_flags(struct exchange *x, const struct reading *r)
{
    if (r->nflags == 0)
        return;
    (void)dynbuf_addf(&x->out,
                      "<section class=\"flags%s\" aria-labelledby=\"look\">\n<h2 id=\"look\">%s</h2>\n<ul>\n",
                      r->blocks ? " stop" : "", r->blocks ? "Blocked: this cannot be approved here" : "Look twice");
    for (size_t pass = 0; pass < 2; pass++) /* what blocks comes first */
        for (size_t i = 0; i < r->nflags; i++)
            if (r->flag[i].blocks == (pass == 0))
                flag(x, &r->flag[i]);
    if (r->more)
        (void)dynbuf_addf(&x->out, "<li>And %zu more.</li>\n", r->more);
    PUT(x, "</ul>\n</section>\n");
}

static void value(struct exchange *x, const struct said *s)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<div><dt>");
    show_cut(out, s->name.n ? s->name : SPAN("(all of it)"), FLAG_NAME_SHOWN);
    if (s->times > 1)
        (void)dynbuf_addf(out, " <small>%zu times, the first is</small>", s->times);
    PUT(x, "</dt><dd>");
    if (s->value.n)
        show_cut(out, s->value, VALUE_SHOWN);
    else
        PUT(x, "<i>empty</i>");
    if (s->opened.n) {
        PUT(x, "<br><small>base64 of</small> <span class=\"opened\">");
        show_cut(out, s->opened, VALUE_SHOWN);
        PUT(x, "</span>");
    }
    PUT(x, "</dd></div>\n");
}

/* Short JSON is as well read spread over lines: of it, what is encoded. */
void page_values(struct exchange *x, const struct reading *r)
{
    bool brief = !r->together && span_eq(span_str(r->kind), SPAN("JSON"));
    size_t n = 0;

    for (size_t i = 0; i < r->nsaid; i++)
        n += !brief || r->said[i].opened.n > 0;
    if (n == 0)
        return;
    PUT(x, "<p class=\"label\">");
    if (brief) {
        PUT(x, "What is encoded in it");
    } else {
        PUT(x, "As ");
        show_own(&x->out, r->kind);
        PUT(x, ", it has ");
        show_count(&x->out, r->values, "value");
        show_own(&x->out, r->together ? ", those of lists told together" : "");
    }
    PUT(x, "</p>\n<dl class=\"fields mono\">\n");
    for (size_t i = 0; i < r->nsaid; i++)
        if (!brief || r->said[i].opened.n > 0)
            value(x, &r->said[i]);
    PUT(x, "</dl>\n");
    if (r->nsaid == READING_ROWS)
        PUT(x, "<p class=\"note\">There is more than is listed: read the body itself.</p>\n");
}
