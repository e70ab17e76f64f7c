/* countersign freeze, thaw: refuse every write at once, and let them go again */
#include <getopt.h>
#include <stdio.h>

#include "cli/verb.h"
#include "cli/verbs.h"
#include "common/json/json.h"

enum { OPT_REASON = OPT_OWN + 1, REASON_ROOM = 4096 };

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

static int change(int argc, char **argv, const char *path, const char *words)
{
    static const struct option options[] = {
        VERB_OPTIONS, {"reason", required_argument, NULL, OPT_REASON}, {NULL, 0, NULL, 0}};
    const char *state_dir = NULL, *reason = NULL;
    bool json = false;
    struct gateway_call g;
    int o, rc;

    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (o) {
        case OPT_STATE_DIR: state_dir = optarg; break;
        case OPT_JSON: json = true; break;
        case OPT_REASON: reason = optarg; break;
        default: return cli_usage(argv[0]);
        }
    if (optind != argc)
        return cli_usage(argv[0]);
    rc = verb_begin(&g, state_dir, json);
    if (rc == CLI_OK)
        rc = ask(&g, path, reason);
    if (rc == CLI_OK && json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        puts(words);
    verb_end(&g);
    return rc;
}

int freeze_main(int argc, char **argv)
{
    return change(argc, argv, "/api/v1/freeze",
                  "Writes are frozen: every one is refused until `countersign thaw`. Reads go on; tickets wait.");
}

int thaw_main(int argc, char **argv)
{
    return change(argc, argv, "/api/v1/thaw", "Writes are decided again as the policy says.");
}
