/* countersign freeze, thaw: refuse every write at once, and let them go again */
#include <stdio.h>

#include "cli/verb.h"
#include "common/json/json.h"

enum { REASON_ROOM = 4096 };

static int ask(struct gateway_call *g, const char *path, const char *reason)
{
    struct dynbuf body;
    struct jsonw w;

    dynbuf_init(&body, REASON_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    if (reason)
        jsonw_kv(&w, "reason", span_str(reason));
    jsonw_end_object(&w);
    int rc = dynbuf_ok(&body) ? verb_ask(g, "POST", path, dynbuf_span(&body), 200)
                              : verb_fail(CLI_USAGE, "the reason is too long");
    dynbuf_free(&body);
    return rc;
}

static int change(const struct cli_call *c, const char *path, const char *words)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = ask(&g, path, cli_value(c, "reason"));
    if (rc == CLI_OK && c->json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        puts(words);
    verb_end(&g);
    return rc;
}

int freeze_main(const struct cli_call *c)
{
    return change(c, "/api/v1/freeze",
                  "Writes are frozen: every one is refused until `countersign thaw`. Reads go on; tickets wait.");
}

int thaw_main(const struct cli_call *c)
{
    return change(c, "/api/v1/thaw", "Writes are decided again as the policy says.");
}
