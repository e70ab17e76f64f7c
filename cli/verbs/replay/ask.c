/* Recorded runs whose models are asked once more: the broker runs each as a
 * turn of its own, and it is waited for. */
#include <stdio.h>
#include <unistd.h>

#include "cli/verbs/replay/replay.h"

enum { PATH_ROOM = 256 };

/* Servers of MCP are not started for a replay, so that nothing is run: their
 * tools no model could be told of. */
static bool has_servers_tools(const struct set_run *run)
{
    for (size_t i = 0; i < run->rows; i++) {
        const struct tape_row *row = &run->row[i].row;
        size_t n =
            row->kind == TAPE_HEARD && row->e.heard == HEARD_ANSWER && row->e.n <= TURN_CALLS_MAX ? row->e.n : 0;
        for (size_t k = 0; k < n; k++)
            if (span_find(row->tool[k], SPAN("__")) < row->tool[k].n)
                return true;
    }
    return false;
}

static int heard(void *ctx, const struct api_event *ev)
{
    return 0;
}

/* Its stream ends when no turn of its conversation is left. */
static int wait_for(const struct replaying *x, const char *conversation)
{
    char path[PATH_ROOM];
    struct err e;

    (void)snprintf(path, sizeof(path), "/stream/%s?tenant=%s", conversation, x->tenant);
    return api_stream(x->sock, path, NULL, heard, NULL, &e) == 0
               ? CLI_OK
               : verb_fail(CLI_RUNTIME, "a replay goes on, and its stream cannot be read: %s", e.text);
}

static int ask_one(struct replaying *x, const struct set_run *run)
{
    char id[ID_TEXT + 1], conversation[ID_TEXT + 1] = "", turn[ID_TEXT + 1] = "";
    struct dynbuf answer;
    struct arena a;
    unsigned status = 0;

    id_text(&run->turn, id);
    arena_init(&a, API_ANSWER_MAX);
    int rc = replay_call(x, "POST", "turns", id, "replay", 0, &status, &answer);
    if (rc == CLI_OK && status == 202) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        (void)snprintf(conversation, sizeof(conversation), "%.*s", SPAN_FMT(member_text(j, "conversation_id")));
        (void)snprintf(turn, sizeof(turn), "%.*s", SPAN_FMT(member_text(j, "turn_id")));
    } else if (rc == CLI_OK) {
        rc = replay_refused(status, &answer);
    }
    arena_free(&a);
    dynbuf_free(&answer);
    if (rc == CLI_OK)
        rc = wait_for(x, conversation);
    if (rc == CLI_OK)
        rc = replay_add(x, turn, &status);
    if (rc == CLI_OK && status != 200)
        rc = verb_fail(CLI_RUNTIME, "turn %s is not there any more", turn);
    return rc;
}

int replay_ask(struct replaying *x, struct replay_set *then)
{
    int rc = CLI_OK;
    size_t n = 0, all = then->n;

    for (size_t i = 0; i < all && rc == CLI_OK; i++) {
        if (has_servers_tools(&then->run[i]) || then->run[i].end == END_CANCELLED) {
            x->left_out++;
            continue;
        }
        then->run[n++] = then->run[i];
        if (isatty(2))
            fprintf(stderr, "# run %zu of %zu\n", i + 1, all);
        rc = ask_one(x, &then->run[n - 1]);
    }
    then->n = n;
    if (rc == CLI_OK && n == 0)
        rc = verb_fail(CLI_RUNTIME, "no run of this set can be asked once more");
    if (rc == CLI_OK && x->left_out > 0)
        fprintf(stderr,
                "# %llu runs were left out: they were cancelled, or called tools "
                "of MCP servers\n",
                (unsigned long long)x->left_out);
    return rc;
}
