/* countersign sandbox start|started|destroy: sandboxes that the gateway itself starts. */
#include "cli/verbs/started/started.h"

#include <stdio.h>

#include "policy/load/read/scalar.h"
#include "sandbox-shim/plan/limits.h"

enum { MOUNTS_MAX = 8, NAME_MAX_BYTES = 63, SHORT_DIGEST = sizeof("sha256:") - 1 + 12 };

const char *started_name_wrong(const char *s)
{
    size_t n = strlen(s);
    bool ok = n > 0 && n <= NAME_MAX_BYTES && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") == n;
    return ok ? NULL : "that is not a sandbox's name";
}

int started_put_seconds(struct jsonw *w, const struct cli_call *c, const char *option)
{
    const char *value = cli_value(c, option);
    uint64_t ms = 0;
    const char *wrong = value ? scalar_time(span_str(value), &ms) : NULL;

    if (wrong || (value && ms < 1000))
        return verb_fail(CLI_USAGE, "--%s %s", option, wrong ? wrong : "is at least a second");
    if (value)
        jsonw_kv_u64(w, option, ms / 1000);
    return CLI_OK;
}

int started_put_bytes(struct jsonw *w, const struct cli_call *c, const char *option, unsigned least_mib)
{
    const char *value = cli_value(c, option);
    char name[32];
    uint64_t bytes;
    struct err e;

    (void)snprintf(name, sizeof(name), "--%s", option);
    if (!value)
        return CLI_OK;
    if (limits_bytes(&bytes, name, value, least_mib, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    jsonw_kv_u64(w, option, bytes);
    return CLI_OK;
}

/* NAME:/PLACE each */
int started_put_mounts(struct jsonw *w, const struct cli_call *c)
{
    const char *value[MOUNTS_MAX + 1];
    size_t n = cli_values(c, "mount", value, MOUNTS_MAX + 1);

    if (n == 0)
        return CLI_OK;
    if (n > MOUNTS_MAX)
        return verb_fail(CLI_USAGE, "at most %d mounts", MOUNTS_MAX);
    jsonw_kv_array(w, "mounts");
    for (size_t i = 0; i < n; i++) {
        const char *colon = strchr(value[i], ':');
        if (!colon || colon == value[i] || colon[1] != '/')
            return verb_fail(CLI_USAGE, "--mount is NAME:/PLACE, such as rules:/mnt/rules");
        jsonw_object(w);
        jsonw_kv(w, "name", span_of(value[i], (size_t)(colon - value[i])));
        jsonw_kv(w, "at", span_str(colon + 1));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    return CLI_OK;
}

/* --- start ----------------------------------------------------------------------- */

static int put_counts(struct jsonw *w, const struct cli_call *c)
{
    const char *pids = cli_value(c, "pids"), *cpus = cli_value(c, "cpus"), *files = cli_value(c, "files");
    struct limits l = {0};
    struct err e;
    uint64_t n;

    if ((pids && limits_pids(&l, pids, &e) != 0) || (cpus && limits_cpus(&l, cpus, &e) != 0))
        return verb_fail(CLI_USAGE, "%s", e.text);
    if (files && span_u64(span_str(files), 65536, &n) != 0)
        return verb_fail(CLI_USAGE, "--files %s is not a number up to 65536", files);
    if (pids)
        jsonw_kv_u64(w, "pids", l.pids);
    if (cpus)
        jsonw_kv_u64(w, "cpu_percent", l.cpu_percent);
    if (files)
        jsonw_kv_u64(w, "files", n);
    return CLI_OK;
}

static int put_egress(struct jsonw *w, const struct cli_call *c)
{
    const char *bytes = cli_value(c, "egress-bytes"), *requests = cli_value(c, "egress-requests");
    uint64_t n, all;
    struct err e;

    if (!bytes && !requests)
        return CLI_OK;
    if (bytes && limits_bytes(&n, "--egress-bytes", bytes, 0, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    if (requests && (span_u64(span_str(requests), UINT64_C(1) << 50, &all) != 0 || all == 0))
        return verb_fail(CLI_USAGE, "--egress-requests %s is not a number from 1 on", requests);
    jsonw_kv_object(w, "egress");
    if (bytes)
        jsonw_kv_u64(w, "bytes", n);
    if (requests)
        jsonw_kv_u64(w, "requests", all);
    jsonw_end_object(w);
    return CLI_OK;
}

/* never: also where the configuration says when. */
static int put_idle(struct jsonw *w, const struct cli_call *c)
{
    const char *value = cli_value(c, "idle");

    if (!value || strcmp(value, "never") != 0)
        return started_put_seconds(w, c, "idle");
    jsonw_kv_u64(w, "idle", 0);
    return CLI_OK;
}

static int start_request(const struct cli_call *c, const char *name, const char *from, struct dynbuf *body)
{
    static const char *const texts[] = {"limits", "session", "image", "lane"};
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (name)
        jsonw_kv(&w, "name", span_str(name));
    if (from)
        jsonw_kv(&w, "from", span_str(from));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (cli_value(c, texts[i]))
            jsonw_kv(&w, texts[i], span_str(cli_value(c, texts[i])));
    int rc = started_put_mounts(&w, c);
    if (rc == CLI_OK)
        rc = started_put_bytes(&w, c, "memory", 64);
    if (rc == CLI_OK)
        rc = started_put_bytes(&w, c, "disk", 1);
    if (rc == CLI_OK)
        rc = put_counts(&w, c);
    if (rc == CLI_OK)
        rc = put_egress(&w, c);
    if (rc == CLI_OK)
        rc = started_put_seconds(&w, c, "timeout");
    if (rc == CLI_OK)
        rc = put_idle(&w, c);
    jsonw_end_object(&w);
    return rc;
}

int started_start(const struct cli_call *c, const char *name, const char *from)
{
    struct gateway_call g;
    struct dynbuf body;
    static const char path[] = "/api/v1/sandboxes/start";
    const char *wrong = name ? started_name_wrong(name) : NULL;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = start_request(c, name, from, &body);
    if (rc == CLI_OK)
        rc = from ? verb_ask_long(&g, "POST", path, dynbuf_span(&body), 201, "its files are put into it")
                  : verb_ask(&g, "POST", path, dynbuf_span(&body), 201);
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rc == CLI_OK) {
        print_text(member_text(g.tree, "name"));
        putchar('\n');
        fprintf(stderr, "limits: %.*s, held by %.*s\nimage: %.*s, %.*s\n", SPAN_FMT(member_text(g.tree, "limits")),
                SPAN_FMT(member_text(g.tree, "held_by")), SPAN_FMT(member_text(g.tree, "image")),
                SPAN_FMT(member_text(g.tree, "digest")));
        if (member_text(g.tree, "lane").n > 0)
            fprintf(stderr, "lane: %.*s\n", SPAN_FMT(member_text(g.tree, "lane")));
    }
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

int sandbox_start(const struct cli_call *c)
{
    return started_start(c, c->nwords ? c->word[0] : NULL, cli_value(c, "from"));
}

/* --- those that run ----------------------------------------------------------------- */

static void print_egress(const struct json *e)
{
    if (e && json_get(e, SPAN("requests")))
        printf("%llu of %llu requests  ", (unsigned long long)member_u64(e, "requests_used"),
               (unsigned long long)member_u64(e, "requests"));
    if (e && json_get(e, SPAN("bytes")))
        printf("%llu of %llu KiB sent and received  ", (unsigned long long)member_u64(e, "bytes_used") >> 10,
               (unsigned long long)member_u64(e, "bytes") >> 10);
}

static void print_idle(const struct json *r)
{
    char since[32];

    print_text(member_text(r, "name"));
    printf("  idle since %s  generation %llu  %llu s left, from when it is needed again  ",
           time_text(member_u64(r, "idle_since_ms"), since), (unsigned long long)member_u64(r, "generation"),
           (unsigned long long)member_u64(r, "left_ms") / 1000);
    print_text(member_text(r, "image"));
    putchar('\n');
}

static void print_started(const struct json *r)
{
    bool still = span_eq(member_text(r, "state"), SPAN("paused"));

    if (span_eq(member_text(r, "state"), SPAN("idle"))) {
        print_idle(r);
        return;
    }

    print_text(member_text(r, "name"));
    if (still) {
        fputs("  paused by ", stdout);
        print_text(member_text(r, "paused_by"));
    }
    if (member_text(r, "not_idle").n > 0) {
        fputs("  not made idle: ", stdout);
        print_text(member_text(r, "not_idle"));
    }
    printf("  generation %llu  %llu s, %llu s left, idle %llu s  %llu commands  %llu MiB, %llu processes  ",
           (unsigned long long)member_u64(r, "generation"), (unsigned long long)member_u64(r, "age_ms") / 1000,
           (unsigned long long)member_u64(r, "left_ms") / 1000, (unsigned long long)member_u64(r, "idle_ms") / 1000,
           (unsigned long long)member_u64(r, "commands"), (unsigned long long)member_u64(r, "memory") >> 20,
           (unsigned long long)member_u64(r, "pids"));
    print_egress(json_get(r, SPAN("egress")));
    print_text(member_text(r, "limits"));
    fputs(", ", stdout);
    print_text(member_text(r, "held_by"));
    fputs("  ", stdout);
    print_text(member_text(r, "image"));
    putchar(' ');
    print_text(span_first(member_text(r, "digest"), SHORT_DIGEST));
    if (member_text(r, "lane").n > 0) {
        fputs("  lane ", stdout);
        print_text(member_text(r, "lane"));
    }
    putchar('\n');
}

int sandbox_started(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/sandboxes/started", SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("started")) : NULL;
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else
        for (const struct json *r = rows ? rows->child : NULL; r; r = r->next)
            print_started(r);
    verb_end(&g);
    return rc;
}

/* --- its time ------------------------------------------------------------------------- */

int sandbox_timeout(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    char path[PATH_ROOM], body[64];
    uint64_t ms = 0;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    wrong = scalar_time(span_str(c->word[1]), &ms);
    if (rc == CLI_OK && (wrong || ms < 1000))
        rc = verb_fail(CLI_USAGE, "the time %s", wrong ? wrong : "is at least a second");
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/timeout", c->word[0]);
    (void)snprintf(body, sizeof(body), "{\"timeout\":%llu}", (unsigned long long)ms / 1000);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "POST", path, span_str(body), 204);
    verb_end(&g);
    return rc;
}

/* --- a pause -------------------------------------------------------------------------- */

/* said: what it is then, or NULL: by what it is so. */
static int ask_to(const struct cli_call *c, const char *what, const char *said)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/%s", c->word[0], what);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = verb_ask_long(&g, "POST", path, SPAN_NONE, 200, "its files are put into it");
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rc == CLI_OK && !member_u64(g.tree, "restored")) /* else verb_end says it */
        fprintf(stderr, "%s%.*s\n", said ? said : "paused by ",
                SPAN_FMT(said ? SPAN_NONE : member_text(g.tree, "paused_by")));
    verb_end(&g);
    return rc;
}

int sandbox_pause(const struct cli_call *c)
{
    return ask_to(c, "pause", NULL);
}

int sandbox_resume(const struct cli_call *c)
{
    return ask_to(c, "resume", "it goes on, as its next generation: leases of before are dead");
}

/* --- an end --------------------------------------------------------------------------- */

int sandbox_destroy(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/destroy", c->word[0]);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "POST", path, SPAN_NONE, 204);
    verb_end(&g);
    return rc;
}
