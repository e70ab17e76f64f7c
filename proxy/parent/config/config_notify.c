/* notify: of the configuration: who is told outside the page, of what, and how. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/net/addr.h"
#include "policy/load/read/scalar.h"
#include "proxy/parent/config/config_in.h"

enum { GIVE_UP_MS = 24 * 3600 * 1000 };

struct row_mail {
    const struct node *at;
    struct item relay, from, user, password;
    struct number starttls;
    struct items to;
};
struct row_person {
    const struct node *at;
    struct item slack, who;
};
struct row_notify {
    const struct node *at;
    struct item name, webhook, slack, secret, signing, ca;
    struct list people;
    struct row_mail mail;
    struct number events, give_up, budget;
    struct items tenants, allow_private;
};

static const struct choice events[] = {{"waiting", TELL_WAITING},     {"decided", TELL_DECIDED},
                                       {"expired", TELL_EXPIRED},     {"cancelled", TELL_CANCELLED},
                                       {"executed", TELL_EXECUTED},   {"failed", TELL_FAILED},
                                       {"unknown", TELL_UNKNOWN},     {"frozen", TELL_FROZEN},
                                       {"escalated", TELL_ESCALATED}, {NULL, 0}};
enum { STARTTLS_REQUIRED = 0, STARTTLS_OFFERED };
static const struct choice starttls[] = {{"required", STARTTLS_REQUIRED}, {"offered", STARTTLS_OFFERED}, {NULL, 0}};
static const struct key mail_keys[] = {
    {"relay", KEY_TEXT, AT(row_mail, relay), KEY_NEEDED, .help = "smtp://HOST:PORT, or smtps://HOST:PORT"},
    {"from", KEY_TEXT, AT(row_mail, from), KEY_NEEDED, .help = "the address that it comes from"},
    {"to", KEY_TEXTS, AT(row_mail, to), KEY_NEEDED, .help = "addresses that it goes to"},
    {"user", KEY_TEXT, AT(row_mail, user), 0, .help = "by which the relay knows us"},
    {"password", KEY_TEXT, AT(row_mail, password), 0, .help = "name of the stored secret that goes with user"},
    {"starttls", KEY_ONE_OF, AT(row_mail, starttls), 0, .choices = starttls,
     .help = "required; or offered: without TLS where the relay has none"},
    {.type = KEY_END}};
static const struct table mail_table = {"mail", sizeof(struct row_mail), mail_keys};
static const struct key person_keys[] = {
    {"slack", KEY_TEXT, AT(row_person, slack), KEY_NEEDED,
     .help = "TEAM/USER: their ids there, as T012AB3C4/U9ZX8Y7"},
    {"operator", KEY_TEXT, AT(row_person, who), KEY_NEEDED, .help = "which operator they are"},
    {.type = KEY_END}};
static const struct table person_table = {"people", sizeof(struct row_person), person_keys};
static const struct key notify_keys[] = {
    {"name", KEY_TEXT, AT(row_notify, name), KEY_NEEDED, .help = "what it is called by"},
    {"webhook", KEY_TEXT, AT(row_notify, webhook), 0, .help = "https URL that is sent signed webhooks"},
    {"secret", KEY_TEXT, AT(row_notify, secret), 0,
     .help = "of webhook: name of the stored secret that signs, whsec_ and base64"},
    {"slack", KEY_TEXT, AT(row_notify, slack), 0,
     .help = "name of the stored secret that is the URL of an incoming webhook of Slack's"},
    {"signing", KEY_TEXT, AT(row_notify, signing), 0,
     .help = "of slack: name of the stored secret that signs what Slack sends back; then a message has Deny"},
    {"people", KEY_LIST, AT(row_notify, people), 0, .table = &person_table,
     .help = "of signing: who may press it, and which operator that is"},
    {"mail", KEY_MAP, AT(row_notify, mail), 0, .table = &mail_table, .help = "mail through a relay"},
    {"events", KEY_SOME_OF, AT(row_notify, events), 0, .choices = events, .help = "of what; else waiting"},
    {"tenants", KEY_TEXTS, AT(row_notify, tenants), 0, .help = "of whose sandboxes; else of all"},
    {"give_up", KEY_TIME, AT(row_notify, give_up), 0, .lo = 5000, .hi = UINT64_C(7) * 86400 * 1000,
     .help = "how long it is tried; else 24h"},
    {"budget", KEY_COUNT, AT(row_notify, budget), 0, .lo = 1, .hi = 1000,
     .help = "of so many waiting requests one by one in an hour; of more in one message"},
    {"ca", KEY_TEXT, AT(row_notify, ca), 0, .help = "PEM file of the CA of its server, instead of roots"},
    {"allow_private", KEY_TEXTS, AT(row_notify, allow_private), 0,
     .help = "ranges that its server may be in although they are private"},
    {.type = KEY_END}};
const struct table config_notify_table = {"notify", sizeof(struct row_notify), notify_keys};

static void take_url(struct loader *l, const struct item *it, struct config_notify *n)
{
    struct tell_url u;
    bool mail = n->kind == TELL_MAIL;
    config_copy(l, n->url, sizeof(n->url), it);
    if (tell_url_parse(it->text, &u) != 0 || (u.scheme.p[0] == 's') != mail)
        load_problem(l, it->at, "C027", "%s",
                     mail ? "a relay is smtp://HOST:PORT or smtps://HOST:PORT"
                          : "this is no URL such as https://hooks.example/countersign, without user or #");
    else if (span_eq(u.scheme, SPAN("http")) && !tell_url_is_loopback(&u))
        load_problem(l, it->at, "C027", "without TLS a webhook may only go to loopback: 127.0.0.1 or localhost");
    n->loopback = !l->failed && tell_url_is_loopback(&u);
}

static void take_secret(struct loader *l, const struct item *it, char to[TELL_SECRET_MAX + 1])
{
    if (it->text.n > TELL_SECRET_MAX || !scalar_is_name(it->text))
        load_problem(l, it->at, "C027", "a stored secret's name has letters, digits, '.', '_' and '-'");
    config_copy(l, to, TELL_SECRET_MAX + 1, it);
}

/* The way back from Slack: what signs it, and whose word counts. Somebody there is one operator, and never by a name.
 */
static void take_people(struct loader *l, const struct row_notify *r, struct config_notify *n)
{
    take_secret(l, &r->signing, n->signing);
    if (r->people.n == 0 || r->people.n > TELL_PEOPLE_MAX)
        load_problem(l, r->at, "C027", "with signing: goes people: of 1 to %d, who may press the button",
                     TELL_PEOPLE_MAX);
    for (size_t i = 0; i < r->people.n && !l->failed; i++) {
        const struct row_person *p = (const struct row_person *)r->people.v + i;
        if (!tell_slack_who_ok(p->slack.text))
            load_problem(l, p->slack.at, "C027",
                         "somebody in Slack is TEAM/USER, by their ids, such as T012AB3C4/U9ZX8Y7");
        for (size_t k = 0; k < i; k++)
            if (span_eq(span_str(n->people[k].who), p->slack.text))
                load_problem(l, p->slack.at, "C027", "they are named already");
        if (!config_sandbox_ok(p->who.text) || p->who.text.n > TELL_WHO_MAX)
            load_problem(l, p->who.at, "C027", "this is no operator's name (countersign operator list)");
        config_copy(l, n->people[i].who, sizeof(n->people[i].who), &p->slack);
        config_copy(l, n->people[i].name, sizeof(n->people[i].name), &p->who);
        n->npeople = i + 1;
    }
}

static void take_address(struct loader *l, const struct item *it, char to[TELL_ADDRESS_MAX + 1])
{
    if (!tell_address_ok(it->text))
        load_problem(l, it->at, "C027", "a mail address is LOCAL@DOMAIN of plain letters, digits and . _ + - =");
    else
        config_copy(l, to, TELL_ADDRESS_MAX + 1, it);
}

static void take_mail(struct loader *l, const struct row_mail *r, struct config_notify *n)
{
    n->kind = TELL_MAIL;
    take_url(l, &r->relay, n);
    take_address(l, &r->from, n->from);
    if (r->to.n > TELL_TO_MAX)
        load_problem(l, r->to.at, "C027", "at most %d addresses", TELL_TO_MAX);
    for (size_t i = 0; i < r->to.n && i < TELL_TO_MAX; i++)
        take_address(l, &r->to.v[i], n->to[n->nto++]);
    n->tls_required = r->starttls.v == STARTTLS_REQUIRED;
    if ((r->user.at != NULL) != (r->password.at != NULL))
        load_problem(l, r->at, "C027", "user: and password: go together");
    if (r->user.at == NULL)
        return;
    if (!n->tls_required && !span_starts(r->relay.text, SPAN("smtps:")))
        load_problem(l, r->starttls.at, "C027", "a password is only said over TLS: starttls: required");
    if (!span_is_of(r->user.text, SPAN("@._+-=")) || r->user.text.n > TELL_ADDRESS_MAX)
        load_problem(l, r->user.at, "C027", "this is no user's name");
    config_copy(l, n->user, sizeof(n->user), &r->user);
    take_secret(l, &r->password, n->secret);
}

static void take_way(struct loader *l, const struct row_notify *r, struct config_notify *n)
{
    if ((r->webhook.at != NULL) + (r->slack.at != NULL) + (r->mail.at != NULL) != 1 ||
        (r->webhook.at != NULL) != (r->secret.at != NULL)) {
        load_problem(l, r->at, "C027", "one is told by exactly one of webhook: (with secret:), slack: and mail:");
        return;
    }
    if ((r->signing.at != NULL || r->people.at != NULL) && (r->slack.at == NULL || r->signing.at == NULL))
        load_problem(l, r->at, "C027", "signing: and people: go together, with slack:");
    if (r->mail.at != NULL) {
        take_mail(l, &r->mail, n);
    } else if (r->slack.at != NULL) {
        n->kind = TELL_SLACK;
        take_secret(l, &r->slack, n->secret);
        if (r->signing.at != NULL)
            take_people(l, r, n);
    } else {
        n->kind = TELL_WEBHOOK;
        take_url(l, &r->webhook, n);
        take_secret(l, &r->secret, n->secret);
    }
}

static void take_ranges(struct loader *l, const struct items *it, struct config_notify *n)
{
    struct cidr c;
    if (it->n > sizeof(n->cidr) / sizeof(n->cidr[0]))
        load_problem(l, it->at, "C027", "at most %zu ranges", sizeof(n->cidr) / sizeof(n->cidr[0]));
    for (size_t i = 0; i < it->n && !l->failed; i++) {
        if (cidr_parse(it->v[i].text, &c) != 0)
            load_problem(l, it->v[i].at, "C027", "a range is ADDRESS/BITS, such as 10.1.0.0/16");
        config_copy(l, n->cidr[n->ncidrs++], sizeof(n->cidr[0]), &it->v[i]);
    }
}

static void take_row(struct loader *l, const struct row_notify *r, const char *file, struct config *c)
{
    struct config_notify *n = &c->notify[c->nnotify];
    if (!config_sandbox_ok(r->name.text))
        load_problem(l, r->name.at, "C027", "a name here is 1 to 63 of a-z 0-9 . _ -");
    for (size_t i = 0; i < c->nnotify; i++)
        if (span_eq(span_str(c->notify[i].name), r->name.text))
            load_problem(l, r->name.at, "C027", "there is one of this name already");
    config_copy(l, n->name, sizeof(n->name), &r->name);
    take_way(l, r, n);
    take_ranges(l, &r->allow_private, n);
    n->events = r->events.at != NULL ? (uint32_t)r->events.v : TELL_WAITING;
    n->give_up_ms = r->give_up.at != NULL ? r->give_up.v : GIVE_UP_MS;
    n->budget = (uint32_t)r->budget.v;
    if (r->tenants.n > TELL_TENANTS_MAX)
        load_problem(l, r->tenants.at, "C027", "at most %d tenants", TELL_TENANTS_MAX);
    for (size_t i = 0; i < r->tenants.n && i < TELL_TENANTS_MAX; i++) {
        if (!config_sandbox_ok(r->tenants.v[i].text))
            load_problem(l, r->tenants.v[i].at, "C027", "a tenant's name is 1 to 63 of a-z 0-9 . _ -");
        config_copy(l, n->tenant[n->ntenants++], CONFIG_NAME, &r->tenants.v[i]);
    }
    if (r->ca.at != NULL) {
        config_copy_path(l, n->ca, CONFIG_PATH, file, &r->ca);
        if (!l->failed && access(n->ca, R_OK) != 0)
            load_problem(l, r->ca.at, "C019", "ca: %.200s cannot be read: %s", n->ca, strerror(errno));
    }
    c->nnotify++;
}

void config_take_notify(struct loader *l, const struct list *rows, const char *file, struct config *c)
{
    if (rows->n > TELL_TARGETS_MAX)
        load_problem(l, rows->at, "C027", "at most %d are told", TELL_TARGETS_MAX);
    for (size_t i = 0; i < rows->n && !l->failed; i++)
        take_row(l, (const struct row_notify *)rows->v + i, file, c);
}

/* What is set, each by its name and with its length: what a later version may say more is not said of one that does
 * not use it, so that an upgrade makes nobody another. */
static void put_number(struct dynbuf *b, const char *key, uint64_t n)
{
    char text[64];
    if (n != 0)
        (void)dynbuf_add(
            b, span_of(text, (size_t)snprintf(text, sizeof(text), "%s %llu\n", key, (unsigned long long)n)));
}

static void put_text(struct dynbuf *b, const char *key, const char *text)
{
    put_number(b, key, strlen(text));
    (void)dynbuf_add(b, span_str(text));
}

int config_notify_digest(const struct config_notify *n, struct digest *out)
{
    struct dynbuf b;
    dynbuf_init(&b, sizeof(*n) + 4096);
    put_text(&b, "name", n->name);
    put_number(&b, "kind", n->kind);
    put_text(&b, "url", n->url);
    put_text(&b, "secret", n->secret);
    put_text(&b, "ca", n->ca);
    put_number(&b, "events", n->events);
    put_number(&b, "give-up", n->give_up_ms);
    for (size_t i = 0; i < n->ntenants; i++)
        put_text(&b, "tenant", n->tenant[i]);
    for (size_t i = 0; i < n->ncidrs; i++)
        put_text(&b, "allow-private", n->cidr[i]);
    put_number(&b, "loopback", n->loopback);
    put_text(&b, "from", n->from);
    put_text(&b, "user", n->user);
    for (size_t i = 0; i < n->nto; i++)
        put_text(&b, "to", n->to[i]);
    put_number(&b, "tls-required", n->tls_required);
    put_text(&b, "signing", n->signing); /* with it a message has a button; who may press that makes it no other */
    bool whole = !b.failed;
    if (whole)
        digest_of(dynbuf_span(&b), out);
    dynbuf_free(&b);
    return whole ? 0 : -1;
}
