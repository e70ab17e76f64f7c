#include "web-approval/history/history.h"

#include "common/text/utf8.h"
#include "web-approval/page/show.h"

struct param {
    const char *name;
    struct span value;
};
enum { PARAMS = 5 };

static void params(const struct history_filter *f, struct param out[PARAMS])
{
    out[0] = (struct param){"q", f->text};
    out[1] = (struct param){"state", f->state};
    out[2] = (struct param){"sandbox", f->sandbox};
    out[3] = (struct param){"host", f->host};
    out[4] = (struct param){"by", f->by};
}

int history_take(struct exchange *x, struct history_filter *f)
{
    struct param all[PARAMS];
    struct id id;

    *f = (struct history_filter){.limit = HISTORY_ROWS};
    if (query_field(x, "q", &f->text) != 0 || query_field(x, "state", &f->state) != 0 ||
        query_field(x, "sandbox", &f->sandbox) != 0 || query_field(x, "host", &f->host) != 0 ||
        query_field(x, "by", &f->by) != 0 || query_field(x, "after", &f->after) != 0)
        return -1;
    f->text = span_trim(f->text);
    f->sandbox = span_trim(f->sandbox);
    f->host = span_trim(f->host);
    f->by = span_trim(f->by);
    params(f, all);
    for (size_t i = 0; i < PARAMS; i++)
        if (all[i].value.n > HISTORY_WORDS || utf8_run(all[i].value) != all[i].value.n ||
            span_index(all[i].value, '\0') < all[i].value.n) {
            reply_problem(x, 400, "Bad request", "`%s` is text of at most %d bytes", all[i].name, HISTORY_WORDS);
            return -1;
        }
    if (f->after.n && id_parse(f->after, &id) != 0) {
        reply_problem(x, 400, "Bad request", "`after` is a ticket's id");
        return -1;
    }
    return 0;
}

bool history_narrowed(const struct history_filter *f)
{
    return f->text.n || f->state.n || f->sandbox.n || f->host.n || f->by.n;
}

void history_query(struct dynbuf *out, const struct history_filter *f, struct span after)
{
    struct param all[PARAMS];
    bool any = false;

    params(f, all);
    for (size_t i = 0; i < PARAMS; i++)
        if (all[i].value.n) {
            (void)dynbuf_addf(out, "%s%s=", any ? "&amp;" : "?", all[i].name);
            show_encoded(out, all[i].value);
            any = true;
        }
    if (after.n) {
        (void)dynbuf_addf(out, "%safter=", any ? "&amp;" : "?");
        show_encoded(out, after);
    }
}
