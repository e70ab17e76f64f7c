#include "cli/policy/show.h"

#include <stdio.h>

int show_json(struct dynbuf *out)
{
    int rc = dynbuf_ok(out) && printf("%.*s\n", SPAN_FMT(dynbuf_span(out))) > 0 ? 0 : -1;
    if (!dynbuf_ok(out))
        fputs("countersign policy: the answer is too large for --json: ask about fewer files at a time\n", stderr);
    dynbuf_free(out);
    return rc;
}
