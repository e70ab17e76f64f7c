/* What leaves a verb: foreign bytes for a terminal, and an answer in JSON. */
#include "cli/policy/show.h"

#include <stdio.h>

#include "common/text/visible.h"

enum { SHOWN_MAX = 1 << 20 };

void show_text(struct span s)
{
    struct dynbuf b;
    dynbuf_init(&b, SHOWN_MAX);
    visible_text(&b, s, false);
    if (!dynbuf_ok(&b))
        fputs("(too long to show)", stdout);
    else if (b.n)
        (void)fwrite(b.p, 1, b.n, stdout);
    dynbuf_free(&b);
}

int show_json(const struct dynbuf *out)
{
    if (dynbuf_ok(out))
        return printf("%.*s\n", SPAN_FMT(dynbuf_span(out))) > 0 ? 0 : -1;
    fputs("countersign policy: the answer is too large for --json: ask about fewer files at a time\n", stderr);
    return -1;
}
