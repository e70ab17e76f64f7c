/* An earlier version of the policy in force again, from the texts that were kept: until somebody ends that. */
#include <stdio.h>
#include <string.h>

#include "common/text/visible.h"
#include "proxy/parent/parent.h"

/* Floors are what no policy lifts: a version that comes with other ones is not to come unnoticed. */
static const char *floors_differ(const struct parent *p, const struct stored *s)
{
    const struct stored_file *then = NULL;
    struct arena a;
    struct digest now;
    struct span text;
    bool differ;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == POLICY_INPUT_FLOORS)
            then = &s->v[i];
    if (p->config->floors[0] == '\0')
        return then ? "; it has floors, which the configuration has not" : "";
    arena_init(&a, 4 * POLICY_FILE_MAX);
    differ = then == NULL || policy_read_file(p->config->floors, POLICY_FILE_MAX, &a, &text, NULL) != 0;
    if (!differ) {
        digest_of(text, &now);
        differ = memcmp(now.b, then->sha256.b, DIGEST_BYTES) != 0;
    }
    arena_free(&a);
    return differ ? "; ITS FLOORS ARE THOSE OF THEN, which are not those of the floors file now" : "";
}

static void pin_of(const struct parent *p, const char *hex, struct span who, struct pin *pin)
{
    struct dynbuf by;
    dynbuf_init(&by, 4 * PIN_WHO);
    visible_text(&by, span_first(who, PIN_WHO / 2), false);
    *pin = (struct pin){.since_ms = loop_wall(p->loop)};
    snprintf(pin->hex, sizeof(pin->hex), "%s", hex);
    snprintf(pin->by, sizeof(pin->by), "%.*s", SPAN_FMT(dynbuf_span(&by)));
    dynbuf_free(&by);
}

static int roll_back(struct parent *p, const char *dir, const char *hex, struct span who, char *said, size_t cap,
                     struct err *e)
{
    struct compiled made;
    struct stored s;
    struct pin pin;
    int bad = stored_open(dir, hex, &s, e) != 0 || parent_compile(p->config, hex, &made, e) != 0 ? -1 : 0;
    pin_of(p, hex, who, &pin);
    if (bad == 0 && pin_write(p->config->state_dir, &pin, e) != 0) {
        parent_drop(&made);
        bad = -1;
    }
    if (bad == 0) {
        parent_take(p, &made);
        p->pin = pin;
        for (struct child *c = p->children; c != NULL; c = c->next)
            parent_send_image(p, c);
        parent_switched(p, "rollback", who);
        snprintf(said, cap,
                 "version %.12s is in force and pinned, whatever the policy files say, until `countersign policy "
                 "rollback --end`%s",
                 hex, floors_differ(p, &s));
    }
    stored_free(&s);
    return bad;
}

int parent_rollback(struct parent *p, struct span prefix, struct span who, char *said, size_t cap, struct err *e)
{
    char dir[VERSIONS_PATH], hex[STORED_HEX + 1];
    if (versions_dir(p->config->state_dir, dir, e) != 0 || stored_find(dir, prefix, hex, e) != 0)
        return -1; /* a slip of the keyboard is nothing for the audit */
    int bad = roll_back(p, dir, hex, who, said, cap, e);
    if (bad)
        parent_refused(p, "rollback", who, e->text);
    return bad;
}
