/* countersign replay export|run: recorded turns of conversations as a benchmark set */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/verbs/replay/replay.h"
#include "common/file.h"

enum { PATH_ROOM = 256, SET_ROOM = SET_BYTES_MAX, SEEDS_USUAL = 5 };

/* --- export ---------------------------------------------------------------------------------- */

int replay_call(const struct replaying *x, const char *method, const char *what, const char *id, const char *which,
                uint64_t after, unsigned *status, struct dynbuf *answer)
{
    char path[PATH_ROOM];
    struct err e;

    (void)snprintf(path, sizeof(path), "/%s/%s/%s?after=%llu&tenant=%s", what, id, which, (unsigned long long)after,
                   x->tenant);
    return api_call(x->sock, method, path, SPAN_NONE, status, answer, &e) == 0 ? CLI_OK
                                                                               : verb_fail(CLI_RUNTIME, "%s", e.text);
}

int replay_refused(unsigned status, const struct dynbuf *answer)
{
    struct err e;

    (void)api_explain(status, dynbuf_span(answer), &e);
    return verb_fail(CLI_RUNTIME, "%s", e.text);
}

int replay_add(struct replaying *x, const char *id, unsigned *status)
{
    struct dynbuf answer;
    int rc = replay_call(x, "GET", "turns", id, "recording", 0, status, &answer);

    if (rc == CLI_OK && *status == 200) {
        (void)dynbuf_add(&x->set, dynbuf_span(&answer));
        x->runs++;
        if (!dynbuf_ok(&x->set))
            rc = verb_fail(CLI_RUNTIME, "a set has at most %d bytes: export fewer runs", SET_BYTES_MAX);
    } else if (rc == CLI_OK && *status != 404) {
        rc = replay_refused(*status, &answer);
    }
    dynbuf_free(&answer);
    return rc;
}

/* A page of a conversation's turns; *after: the last. */
static int add_page(struct replaying *x, const struct json *page, uint64_t *after)
{
    const struct json *list = json_get(page, SPAN("turns"));
    int rc = list ? CLI_OK : verb_fail(CLI_RUNTIME, "the broker's answer is not understood");

    for (const struct json *t = list ? list->child : NULL; t && rc == CLI_OK; t = t->next) {
        const struct json *recorded = json_get(t, SPAN("recorded"));
        char id[ID_TEXT + 1];
        unsigned status = 0;
        (void)snprintf(id, sizeof(id), "%.*s", SPAN_FMT(span_first(member_text(t, "turn_id"), ID_TEXT)));
        *after = member_u64(t, "nth");
        if (recorded && recorded->truth && member_text(t, "end").n > 0)
            rc = replay_add(x, id, &status);
        else
            x->left_out++;
    }
    return rc;
}

static int add_conversation(struct replaying *x, const char *id)
{
    uint64_t after = 0;
    bool more = true;
    int rc = CLI_OK;

    while (rc == CLI_OK && more) {
        struct dynbuf answer;
        struct arena a;
        unsigned status = 0;
        arena_init(&a, 4 * API_ANSWER_MAX);
        rc = replay_call(x, "GET", "conversations", id, "turns", after, &status, &answer);
        const struct json *page = rc == CLI_OK && status == 200 ? json_parse(dynbuf_span(&answer), &a) : NULL;
        if (rc == CLI_OK && status != 200)
            rc = replay_refused(status, &answer);
        else if (rc == CLI_OK)
            rc = add_page(x, page, &after);
        more = json_get(page, SPAN("more")) && json_get(page, SPAN("more"))->truth;
        arena_free(&a);
        dynbuf_free(&answer);
    }
    return rc;
}

int replay_begin(struct replaying *x, const struct cli_call *c)
{
    struct err e;

    dynbuf_init(&x->set, SET_ROOM);
    (void)dynbuf_add(&x->set, SPAN(SET_HEAD "\n"));
    x->tenant = cli_value(c, "tenant") ? cli_value(c, "tenant") : "default";
    if (!span_is_of(span_str(x->tenant), SPAN("-._")) || strlen(x->tenant) > PATH_ROOM / 2)
        return verb_fail(CLI_USAGE, "that is no name of a tenant");
    if (api_socket(c->state_dir, x->sock, &e) != 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    char *slash = strrchr(x->sock, '/');
    (void)snprintf(slash, sizeof(x->sock) - (size_t)(slash - x->sock), "/broker.sock");
    int runs = api_running(x->sock, &e);
    if (runs < 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    return runs > 0
               ? CLI_OK
               : verb_fail(CLI_STORE,
                           "no broker serves here: `broker:` in countersign.yaml makes one (in `only:`, stream)");
}

int replay_export(const struct cli_call *c)
{
    static struct replaying x;
    struct id id;
    int rc = c->nwords ? replay_begin(&x, c) : cli_complain(c->verb, "no turn or conversation is named");

    for (size_t i = 0; i < c->nwords && rc == CLI_OK; i++) {
        unsigned status = 0;
        if (id_parse(span_str(c->word[i]), &id) != 0)
            rc = verb_fail(CLI_USAGE, "`%s` is no id of a turn or a conversation: `countersign chat --list` has some",
                           c->word[i]);
        if (rc == CLI_OK)
            rc = replay_add(&x, c->word[i], &status);
        if (rc == CLI_OK && status == 404)
            rc = add_conversation(&x, c->word[i]);
    }
    if (rc == CLI_OK && x.runs == 0)
        rc = verb_fail(CLI_RUNTIME, "none of these turns has ended and is recorded");
    if (rc == CLI_OK && (fwrite(x.set.p, 1, x.set.n, stdout) != x.set.n || fflush(stdout) != 0))
        rc = verb_fail(CLI_RUNTIME, "standard output: %s", strerror(errno));
    if (rc == CLI_OK)
        fprintf(stderr, "# %llu runs%s\n", (unsigned long long)x.runs,
                x.left_out > 0 ? "; turns that have not ended, or are not recorded, were left out" : "");
    dynbuf_free(&x.set);
    return rc;
}

/* --- run ----------------------------------------------------------------------------------------- */

struct asked {
    enum replay_fault fault[REPLAY_FAULTS];
    size_t faults;
    uint64_t seeds;
};

/* What a mode has no use for. */
static int of_mode(const struct cli_call *c, bool strict, bool live, const struct asked *q)
{
    static const char *const lives[] = {"cost", "parallel", "wait"};
    const char *model[1];

    for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]) && !live; i++)
        if (cli_value(c, lives[i]))
            return verb_fail(CLI_USAGE, "--%s is of a live replay", lives[i]);
    if (!live && cli_values(c, "model", model, 1) > 0)
        return verb_fail(CLI_USAGE, "--model is of a live replay");
    if (!strict && q->faults > 0)
        return verb_fail(CLI_USAGE, "faults are put into strict replays alone");
    if (strict && cli_value(c, "tenant"))
        return verb_fail(CLI_USAGE, "--tenant is of no use in a strict replay: a set says all that it needs");
    if (!live && cli_value(c, "seeds") && q->faults == 0)
        return verb_fail(CLI_USAGE, "--seeds is of no use without --fault: nothing else depends on a seed");
    return CLI_OK;
}

static int read_options(const struct cli_call *c, struct asked *q)
{
    const char *name[REPLAY_FAULTS], *seeds = cli_value(c, "seeds");

    q->faults = cli_values(c, "fault", name, REPLAY_FAULTS);
    for (size_t i = 0; i < q->faults; i++) {
        q->fault[i] = replay_fault_of(span_str(name[i]));
        for (size_t j = 0; j < i; j++)
            if (q->fault[i] == q->fault[j])
                return verb_fail(CLI_USAGE, "the fault `%s` is named twice", name[i]);
    }
    q->seeds = SEEDS_USUAL;
    if (seeds && (span_u64(span_str(seeds), SCORE_SEEDS_MAX, &q->seeds) != 0 || q->seeds == 0))
        return verb_fail(CLI_USAGE, "--seeds is a number from 1 to %d", SCORE_SEEDS_MAX);
    return CLI_OK;
}

int replay_report(const struct cli_call *c, const struct score *s)
{
    const char *format = c->json ? "json" : cli_value(c, "format");
    struct dynbuf out;
    int rc = CLI_OK;

    dynbuf_init(&out, REPORT_MAX);
    if (format && strcmp(format, "json") == 0)
        report_json(s, &out);
    else if (format && strcmp(format, "html") == 0)
        report_page(s, &out);
    else
        report_text(s, &out);
    if (!dynbuf_ok(&out))
        rc = verb_fail(CLI_RUNTIME, "the report is too large: take fewer runs at once");
    else if (fwrite(out.p, 1, out.n, stdout) != out.n || fflush(stdout) != 0)
        rc = verb_fail(CLI_RUNTIME, "standard output: %s", strerror(errno));
    dynbuf_free(&out);
    return rc;
}

static int read_set(const char *path, struct dynbuf *text, struct arena *a, struct replay_set *set)
{
    bool input = strcmp(path, "-") == 0;
    struct err e;

    if ((input ? file_read_fd(0, text) : file_read(path, text)) != 0)
        return verb_fail(CLI_RUNTIME, "%s: %s", path, strerror(errno));
    return set_read(dynbuf_span(text), a, set, &e) == 0 ? CLI_OK : verb_fail(CLI_INVALID, "%s: %s", path, e.text);
}

/* As strictly as it was. */
static int run_strict(const struct cli_call *c, const struct replay_set *set, const struct asked *q, struct arena *a)
{
    static struct score score;
    int rc = score_set(set, q->fault, q->faults, q->seeds, a, &score) == 0 ? replay_report(c, &score)
                                                                           : verb_fail(CLI_RUNTIME, "out of memory");

    if (rc == CLI_OK && score.differ > 0)
        rc = verb_fail(CLI_RUNTIME, "%llu of the runs are otherwise than they were recorded",
                       (unsigned long long)score.differ);
    return rc;
}

/* Its models are asked once more. */
static int run_asked(const struct cli_call *c, struct replay_set *set, struct arena *a)
{
    static struct score then, now;
    static struct replaying x;
    struct replay_set made;
    struct err e;
    int rc = replay_begin(&x, c);

    if (rc == CLI_OK)
        rc = replay_ask(&x, set);
    if (rc == CLI_OK && set_read(dynbuf_span(&x.set), a, &made, &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "what the broker recorded is not understood: %s", e.text);
    if (rc == CLI_OK && (score_set(set, NULL, 0, 0, a, &then) != 0 || score_set(&made, NULL, 0, 0, a, &now) != 0))
        rc = verb_fail(CLI_RUNTIME, "out of memory");
    now.then = &then;
    if (rc == CLI_OK)
        rc = replay_report(c, &now);
    dynbuf_free(&x.set);
    return rc;
}

int replay_run(const struct cli_call *c)
{
    const char *mode = cli_value(c, "mode");
    bool strict = mode == NULL || strcmp(mode, "strict") == 0, live = !strict && strcmp(mode, "live") == 0;
    struct asked q;
    struct replay_set set;
    struct dynbuf text;
    struct arena a;
    int rc = c->nwords == 1 ? read_options(c, &q) : cli_complain(c->verb, "one file is named");

    dynbuf_init(&text, SET_ROOM);
    arena_init(&a, SET_ARENA_MAX);
    if (rc == CLI_OK)
        rc = of_mode(c, strict, live, &q);
    if (rc == CLI_OK)
        rc = read_set(c->word[0], &text, &a, &set);
    if (rc == CLI_OK)
        rc = strict ? run_strict(c, &set, &q, &a) : live ? replay_live(c, &set, &a) : run_asked(c, &set, &a);
    arena_free(&a);
    dynbuf_free(&text);
    return rc;
}
