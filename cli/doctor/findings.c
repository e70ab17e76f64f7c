#include "cli/doctor/findings.h"

#include <stdio.h>

enum { OUT_MAX = 1024 * 1024 };

void findings_begin(struct findings *f, bool json)
{
    *f = (struct findings){.json = json};
    dynbuf_init(&f->out, OUT_MAX);
    jsonw_begin(&f->w, &f->out);
    jsonw_object(&f->w);
    jsonw_kv_array(&f->w, "findings");
}

static void put_text(enum finding_state state, const char *check, const char *why, const char *todo, struct span what)
{
    static const char *const words[] = {[FINDING_BAD] = "BAD", [FINDING_NOTE] = "note", [FINDING_OK] = "ok"};

    printf("%-4s %-10s ", words[state], check);
    print_text(what);
    putchar('\n');
    if (why)
        printf("     why: %s\n", why);
    if (todo)
        printf("     do:  %s\n", todo);
}

void finding(struct findings *f, enum finding_state state, const char *check, const char *why, const char *todo,
             const char *fmt, ...)
{
    static const char *const words[] = {[FINDING_BAD] = "bad", [FINDING_NOTE] = "note", [FINDING_OK] = "ok"};
    char what[2048];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    f->bad += state == FINDING_BAD;
    if (!f->json) {
        put_text(state, check, why, todo, span_str(what));
        return;
    }
    jsonw_object(&f->w);
    jsonw_kv(&f->w, "check", span_str(check));
    jsonw_kv(&f->w, "state", span_str(words[state]));
    jsonw_kv(&f->w, "what", span_str(what));
    if (why)
        jsonw_kv(&f->w, "why", span_str(why));
    if (todo)
        jsonw_kv(&f->w, "do", span_str(todo));
    jsonw_end_object(&f->w);
}

int findings_end(struct findings *f)
{
    jsonw_end_array(&f->w);
    jsonw_kv_u64(&f->w, "bad", f->bad);
    jsonw_end_object(&f->w);
    if (f->json && dynbuf_ok(&f->out)) {
        (void)fwrite(f->out.p, 1, f->out.n, stdout);
        putchar('\n');
    }
    dynbuf_free(&f->out);
    return f->bad ? CLI_RUNTIME : CLI_OK;
}
