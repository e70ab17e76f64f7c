#include "cli/policy/show.h"

#include <stdio.h>

int show_json(const struct dynbuf *out)
{
    if (dynbuf_ok(out))
        return printf("%.*s\n", SPAN_FMT(dynbuf_span(out))) > 0 ? 0 : -1;
    fputs("countersign policy: the answer is too large for --json: ask about fewer files at a time\n", stderr);
    return -1;
}
