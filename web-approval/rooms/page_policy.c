/* The policy in force, its versions, and what it says to a request that is pasted. Nothing of it leaves: the answer
 * is made here, of the same image that the judge decides by. */
#include "common/msg.h"
#include "common/net/chan.h"
#include "policy/explain.h"
#include "proxy/msgs.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

enum { EXPLAIN_ARENA = 64 * 1024 * 1024, LABELS = 64, VERSION_SHOWN = 12, FACTS_SHOWN = 40 };

static const char example[] =
    "POST https://api.example.com/v1/things\nContent-Type: application/json\n\n{\"name\": \"x\"}";

static void form(struct exchange *x, struct span sandbox, struct span text)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, "explain", SPAN_NONE, SPAN_NONE, x->now_ms, mark);
    room_section(x, "try", "What would it say?");
    (void)dynbuf_addf(
        &x->out,
        "<p class=\"hint\">Nothing is sent, held or written down, and limits count as unused.</p>\n"
        "<form class=\"stacked wide-form\" method=\"post\" autocomplete=\"off\" action=\"/policy\">\n"
        "<input type=\"hidden\" name=\"mark\" value=\"%s\">\n<label for=\"box\">Sandbox <small>its labels "
        "count, if there is one of this name</small></label>\n<input id=\"box\" name=\"sandbox\" "
        "maxlength=\"128\" value=\"",
        mark);
    show_text(&x->out, sandbox.n ? sandbox : SPAN("sandbox"));
    PUT(x, "\">\n<label for=\"request\">Request <small>method and URL, header fields, an empty line, the "
           "body</small></label>\n<textarea id=\"request\" name=\"request\" rows=\"8\" spellcheck=\"false\" "
           "required>\n");
    show_field(&x->out, text.n ? text : span_str(example));
    PUT(x, "</textarea>\n<button class=\"yes\">Explain</button>\n</form>\n");
    room_section_end(x);
}

/* --- what it says ------------------------------------------------------------------------ */

static void rule(struct exchange *x, struct span id, struct span file, uint32_t line)
{
    PUT(x, "<b>");
    show_cut(&x->out, id, ROOM_NAME);
    PUT(x, "</b> <span class=\"mono\">");
    show_cut(&x->out, file, ROOM_TEXT);
    (void)dynbuf_addf(&x->out, ":%u</span>", line);
}

static void verdict(struct exchange *x, const struct decision *d)
{
    static const char *const words[] = {"denied", "held for a person", "allowed"};

    PUT(x, "<p class=\"verdict\">");
    page_badge(&x->out, span_str(effect_name(d->effect)));
    PUT(x, " ");
    room_state(x, d->verdict == VERDICT_ALLOW,
               d->need_body ? "cannot be decided without its body" : words[d->verdict]);
    PUT(x, "</p>\n<dl class=\"pairs\">\n<dt>By</dt><dd>");
    if (d->rule.id.n)
        rule(x, d->rule.id, d->rule.file, d->rule.line);
    else
        show_own(&x->out, d->code);
    PUT(x, "</dd>\n");
}

static void details(struct exchange *x, const struct decision *d)
{
    struct credential c;

    if (d->summary.n)
        page_row(x, "In a sentence", d->summary);
    if (d->op.n)
        page_row(x, "Operation", d->op);
    if (d->resource.n)
        page_row(x, "On", d->resource);
    if (d->credential >= 0 && policy_credential(x->desk->policy, (size_t)d->credential, &c))
        page_row(x, "Credential", c.name);
    if (d->verdict == VERDICT_HOLD)
        page_row(x, "Approved by", d->approve_by.n ? d->approve_by : SPAN("any operator"));
    if (d->say.n)
        page_row(x, "The rule says", d->say);
    if (d->instead.n)
        page_row(x, "Instead", d->instead);
    for (size_t i = 0; i < d->nfacts && i < FACTS_SHOWN; i++) {
        PUT(x, "<dt>");
        show_cut(&x->out, d->facts[i].label, ROOM_NAME);
        PUT(x, "</dt><dd class=\"mono\">");
        show_cut(&x->out, d->facts[i].value, ROOM_TEXT);
        PUT(x, "</dd>\n");
    }
    PUT(x, "</dl>\n");
}

static void near(struct exchange *x, const struct near_miss *v, size_t n)
{
    static const char *const heads[] = {"Rule", "Says", "But"};

    if (n == 0)
        return;
    PUT(x, "<h3>Rules that fit but for one thing</h3>\n");
    room_table(x, "Near misses", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < n; i++) {
        PUT(x, "<tr><td>");
        rule(x, v[i].id, v[i].file, v[i].line);
        PUT(x, "</td>");
        room_cell_text(x, "Says", span_str(verdict_name(v[i].verdict)));
        room_cell_text(x, "But", v[i].words);
        PUT(x, "</tr>\n");
    }
    room_table_end(x);
}

/* Who asks, with the labels that the store has of it. */
static void subject(struct exchange *x, struct span name, struct arena *a, struct subject *s)
{
    struct label *v = arena_alloc(a, LABELS * sizeof *v);
    struct sandbox_row r;
    struct err e;

    *s = (struct subject){.sandbox = name.n ? name : SPAN("sandbox"), .labels = v};
    if (!v || desk_store_sandbox(x->desk->store, s->sandbox, a, &r, &e) != 1)
        return;
    const struct json *list = json_parse(r.labels_json, a);
    for (const struct json *l = list ? list->child : NULL; l && s->nlabels < LABELS; l = l->next)
        v[s->nlabels++] = (struct label){l->key, l->text};
}

static void explain(struct exchange *x, struct span sandbox, struct span text)
{
    const struct policy *p = x->desk->policy;
    struct near_miss *miss;
    struct pasted *asked;
    struct subject who;
    struct decision d;
    struct arena a;

    arena_init(&a, EXPLAIN_ARENA);
    asked = arena_alloc(&a, sizeof *asked);
    miss = arena_alloc(&a, NEAR_MAX * sizeof *miss);
    const char *why = asked && miss ? pasted_read(text, &a, asked) : "There is no memory for this.";
    room_section(x, "said", "What the policy says");
    if (!p)
        why = "The policy is not loaded yet.";
    if (why) {
        PUT(x, "<p class=\"note\">");
        show_own(&x->out, why);
        PUT(x, "</p>\n");
    } else {
        subject(x, sandbox, &a, &who);
        policy_judge(p, &who, &asked->request, x->wall_ms, &a, &d);
        verdict(x, &d);
        details(x, &d);
        near(x, miss, policy_near_misses(p, &who, &asked->request, &d, x->wall_ms, &a, miss));
    }
    room_section_end(x);
    arena_free(&a);
}

/* --- which is in force ---------------------------------------------------------------------- */

static void in_force(struct exchange *x)
{
    const struct policy *p = x->desk->policy;
    char hex[2 * DIGEST_BYTES + 1] = "";

    if (!p)
        return;
    if (policy_digest(p).n == DIGEST_BYTES)
        hex_text(policy_digest(p), hex);
    room_section(x, "force", "In force");
    PUT(x, "<dl class=\"pairs\">\n");
    page_row(x, "Name", policy_name(p));
    (void)dynbuf_addf(&x->out, "<dt>Rules</dt><dd>%zu</dd>\n<dt>Version</dt><dd class=\"mono\">%s</dd>\n</dl>\n",
                      policy_rules(p), hex);
    room_section_end(x);
}

static uint64_t number(const struct json *j, const char *name)
{
    const struct json *v = json_get(j, span_str(name));
    uint64_t n = 0;

    return v && span_u64(v->text, UINT64_MAX, &n) == 0 ? n : 0;
}

static void version(struct exchange *x, const struct json *v)
{
    const struct json *now = json_get(v, SPAN("current"));
    struct span digest = json_text(v, SPAN("digest"));

    PUT(x, "<tr><td class=\"mono\">");
    show_cut(&x->out, span_first(digest, digest.n < VERSION_SHOWN ? digest.n : VERSION_SHOWN), VERSION_SHOWN);
    PUT(x, "</td>");
    room_cell_text(x, "Name", json_text(v, SPAN("name")));
    (void)dynbuf_addf(&x->out, "<td><span class=\"label narrow\">Rules </span>%llu</td>",
                      (unsigned long long)number(v, "rules"));
    room_cell(x, "In force since");
    show_time(&x->out, number(v, "in_force_ms"));
    PUT(x, "</td>");
    room_cell(x, NULL);
    if (now && now->truth)
        room_state(x, true, "in force");
    PUT(x, "</td></tr>\n");
}

static void versions(struct exchange *x, const struct json *j)
{
    static const char *const heads[] = {"Version", "Name", "Rules", "In force since", ""};
    const struct json *list = json_get(j, SPAN("versions"));

    room_section(x, "versions", "Versions that are kept");
    if (!list || !list->child) {
        PUT(x, "<p class=\"hint\">Not known now.</p>\n");
    } else {
        room_table(x, "Versions of the policy", heads, sizeof heads / sizeof heads[0]);
        for (const struct json *v = list->child; v; v = v->next)
            version(x, v);
        room_table_end(x);
    }
    PUT(x, "<p class=\"hint\"><code>countersign policy diff</code> says what a change of it would change, "
           "<code>countersign policy rollback</code> puts an earlier one in force.</p>\n");
    room_section_end(x);
}

static void came(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct span text = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    const struct json *j = msg_end(&m) == 0 ? json_parse(text, &x->arena) : NULL;

    room_begin(x, "policy", "Policy", "What may happen. It is changed in its files; here one sees what it says.");
    form(x, SPAN_NONE, SPAN_NONE);
    in_force(x);
    versions(x, j);
    page_end(x);
}

void page_policy(struct exchange *x)
{
    if (ask_begin(x, ASK_PARENT, M_VERSIONS, M_VERSIONS, came))
        ask_send(x);
}

void page_policy_explain(struct exchange *x)
{
    struct span mark, sandbox, text;

    if (form_field(x, "mark", &mark) != 0 || form_field(x, "sandbox", &sandbox) != 0 ||
        form_field(x, "request", &text) != 0 || !page_mark_good(x, "explain", SPAN_NONE, mark))
        return;
    room_begin(x, "policy", "Policy", "What may happen. It is changed in its files; here one sees what it says.");
    explain(x, sandbox, text);
    form(x, sandbox, text);
    in_force(x);
    page_end(x);
}
