/* The keeper: three questions (mint, release, verify), one that it asks itself (fetch), one socket for secrets, no
 * network. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/lease/narrowed.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "common/trace.h"
#include "proxy/keeper/gates/gates.h"
#include "proxy/keeper/keeper.h"
#include "proxy/keeper/master.h"
#include "proxy/keeper/oidc/oidc.h"
#include "proxy/keeper/sources/parked.h"
#include "proxy/keeper/tell/tell.h"

extern char **environ;

enum { IMAGE_MAX = 64 * 1024 * 1024, ENDING_MS = 10 };

static struct keeper keeper = {.dir = -1};

static int64_t now_s(const struct keeper *k)
{
    return (int64_t)(loop_wall(k->loop) / 1000);
}

/* For the audit: who changed which secret. */
void keeper_note(struct keeper *k, const char *act, struct span name, unsigned uid)
{
    struct dynbuf json;
    struct jsonw w;
    struct dynbuf *b = k->ledger ? chan_begin(k->ledger, M_NOTE, 0) : NULL;
    if (b == NULL) {
        log_warn("secret %.*s was %s by uid %u while the ledger was away", SPAN_FMT(name), act, uid);
        return;
    }
    dynbuf_init(&json, 4096);
    jsonw_begin(&w, &json);
    jsonw_object(&w);
    jsonw_kv(&w, "secret", name);
    jsonw_kv(&w, "act", span_str(act));
    jsonw_kv_u64(&w, "uid", uid);
    jsonw_end_object(&w);
    msg_put_span(b, SPAN("secret"));
    msg_put_span(b, dynbuf_span(&json));
    (void)chan_commit(k->ledger);
    dynbuf_free(&json);
}

/* What credentials there is a value for, or that were not refused one when it was asked for: names only, for the page
 * and for `run --with`. */
void keeper_tell_secrets(struct keeper *k)
{
    struct dynbuf *b = chan_begin(role_parent(k->role), M_SECRETS, 0);
    struct credential c;
    struct dynbuf names;
    uint16_t n = 0;
    if (b == NULL)
        return;
    dynbuf_init(&names, 64 * 1024);
    for (size_t i = 0; k->policy != NULL && policy_credential(k->policy, i, &c); i++) {
        bool asked = policy_source_is_asked(c.source), answer = c.source == SOURCE_ANSWER;
        struct secret *value = asked || answer ? NULL : sources_value(k->sources, &c, NULL);
        if (value != NULL || answer || (asked && fetch_outcome(k->fetches, &c, NULL) == 0)) {
            msg_put_span(&names, c.name);
            n++;
        }
        secret_free(&value);
    }
    msg_put_u16(b, n);
    (void)dynbuf_add(b, dynbuf_span(&names));
    (void)chan_commit(role_parent(k->role));
    dynbuf_free(&names);
}

static void on_mint(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span host = msg_get_span(&m, HTTP_HOST_MAX), spki = msg_get_span(&m, 512), leaf = SPAN_NONE;
    enum mint_result r = MINT_REFUSED;
    if (msg_end(&m) == 0)
        r = mint_leaf(k->mint, host, spki, now_s(k), loop_now(k->loop), &leaf);
    trace_step(f->id, "leaf", r == MINT_OK ? "minted" : "refused");
    if (r != MINT_OK)
        log_exchange(LOG_WARN, f->id, "no leaf minted: %s",
                     r == MINT_TOO_FAST ? "too many new names at once" : "not a host or key it takes");
    struct dynbuf *b = chan_begin(k->judge, M_MINTED, f->id);
    if (b == NULL)
        return;
    msg_put_span(b, r == MINT_OK ? leaf : SPAN_NONE);
    msg_put_span(b, r == MINT_OK ? ca_der(k->keep.ca) : SPAN_NONE);
    (void)chan_commit(k->judge);
}

static void release_failed(struct keeper *k, uint64_t xid, const char *code, const char *why)
{
    struct dynbuf *b = chan_begin(k->judge, M_RELEASE_FAILED, xid);
    trace_step(xid, "credential", "refused");
    if (b == NULL)
        return;
    msg_put_span(b, span_str(code));
    msg_put_span(b, span_str(why));
    (void)chan_commit(k->judge);
}

static void give(struct keeper *k, const struct release_ask *ask, const struct release *r)
{
    struct span chunks = dynbuf_span(&r->signature.chunks);
    bool there = k->carrier != NULL && (chunks.n == 0 || chan_send(k->carrier, M_SIGNED, ask->xid, chunks) == 0);
    struct dynbuf *b = there ? chan_begin(k->carrier, M_CREDENTIAL, ask->xid) : NULL;
    if (b == NULL) {
        release_failed(k, ask->xid, "carrier-lost", "the carrier is restarting; repeat the request");
        return;
    }
    msg_put_u32(b, r->ttl_ms);
    msg_put_span(b, ask->scheme);
    msg_put_span(b, ask->host);
    msg_put_u16(b, ask->port);
    msg_put_digest(b, &ask->place);
    msg_put_span(b, ask->credential);
    msg_put_u8(b, (uint8_t)r->slot);
    msg_put_span(b, r->header);
    msg_put_span(b, secret_bytes(r->value));
    msg_put_span(b, secret_bytes(r->pem));
    msg_put_u16(b, (uint16_t)r->nscrub);
    for (size_t i = 0; i < r->nscrub; i++) {
        msg_put_span(b, secret_bytes(r->scrub[i]));
        msg_put_u8(b, r->refuse[i]);
    }
    msg_put_u8(b, (uint8_t)r->signature.nfields);
    for (size_t i = 0; i < r->signature.nfields; i++) {
        msg_put_span(b, r->signature.field[i].name);
        msg_put_span(b, secret_bytes(r->signature.field[i].value));
    }
    msg_put_u32(b, (uint32_t)r->signature.chunks.n);
    msg_put_u64(b, r->version);
    (void)chan_commit(k->carrier);
    trace_step(ask->xid, "credential", "released");
}

/* A secret of the store went out under this credential; secret list says when. */
static void note_use(struct keeper *k, struct span credential)
{
    struct credential c;
    for (size_t i = 0; credential.n && policy_credential(k->policy, i, &c); i++)
        if (span_eq(c.name, credential) && c.source == SOURCE_STORE)
            vault_use(k->keep.vault, c.source_arg, loop_wall(k->loop));
}

void keeper_release(struct keeper *k, uint64_t xid, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct release_ask ask = {.xid = xid, .now_ms = loop_wall(k->loop)};
    struct wire_sign sign = {.nfields = 0};
    struct release out = {0};
    ask.credential = msg_get_span(&m, 256);
    ask.scheme = msg_get_span(&m, 5);
    ask.host = msg_get_span(&m, HTTP_HOST_MAX);
    ask.port = msg_get_u16(&m);
    ask.path = msg_get_span(&m, 3 * HTTP_TARGET_MAX);
    ask.held = msg_get_bool(&m);
    msg_get_digest(&m, &ask.digest);
    ask.signature = msg_get_span(&m, RELEASE_SIGNATURE + RELEASE_PROOF_MAX);
    msg_get_digest(&m, &ask.place);
    ask.refused = msg_get_u64(&m);
    msg_get_id(&m, &ask.lease);
    if (msg_get_bool(&m) && wire_get_sign(&m, &sign) == 0)
        ask.sign = &sign;
    if (msg_end(&m) != 0) {
        release_failed(k, xid, "bad-release", "the release cannot be read");
        return;
    }
    keeper_expire(k);
    switch (releaser_ask(k->releaser, &ask, &out)) {
    case RELEASE_GIVEN:
        give(k, &ask, &out);
        note_use(k, ask.credential);
        break;
    case RELEASE_LATER:
        trace_step(xid, "credential", "is fetched");
        if (parked_add(k, out.wait, xid, payload) != 0)
            release_failed(k, xid, "credential-unavailable",
                           "too many requests wait for credentials; try again shortly");
        break;
    case RELEASE_REFUSED: release_failed(k, xid, out.code ? out.code : "credential-unavailable", out.why.text); break;
    }
    release_clear(&out);
}

static void say_verified(struct keeper *k, uint64_t xid, enum wire_verified found)
{
    struct dynbuf *b = chan_begin(k->judge, M_LEASE_VERIFIED, xid);
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)found);
    (void)chan_commit(k->judge);
}

static void on_lease_verify(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_signed w;
    enum wire_verified found = VERIFIED_NOT;
    if (wire_get_signed(&m, &w) == 0 && msg_end(&m) == 0)
        found = lease_verify(k->lease_keys, k->lease_root, &w);
    else
        log_exchange(LOG_ERROR, f->id, "what a lease signed cannot be read");
    say_verified(k, f->id, found);
}

static void on_lease_narrowed(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    enum wire_verified found = VERIFIED_NOT;
    struct digest mac;
    struct id lease;
    msg_get_id(&m, &lease);
    uint8_t format = msg_get_u8(&m);
    struct span layers = msg_get_span(&m, LEASE_NARROWED_MAX);
    msg_get_digest(&m, &mac);
    if (msg_end(&m) == 0 && format < LEASE_FORMAT_COUNT)
        found = lease_verify_narrowed(k->lease_root, &lease, (enum lease_format)format, layers, &mac);
    else
        log_exchange(LOG_ERROR, f->id, "what was made of a lease cannot be read");
    say_verified(k, f->id, found);
}

static void on_token_end(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct id lease;
    while (!m.bad && m.rest.n > 0) {
        msg_get_id(&m, &lease);
        if (!m.bad)
            tokens_end(k->tokens, &lease);
    }
    if (m.bad)
        log_error("what the judge says of dead leases cannot be read");
}

static void from_judge(void *arg, struct chan *c, struct frame *f)
{
    if (f->type == M_MINT)
        on_mint(arg, f);
    else if (f->type == M_LEASE_VERIFY)
        on_lease_verify(arg, f);
    else if (f->type == M_LEASE_NARROWED)
        on_lease_narrowed(arg, f);
    else if (f->type == M_RELEASE)
        keeper_release(arg, f->id, f->payload);
    else if (f->type == M_TOKEN_END)
        on_token_end(arg, f);
    else
        log_exchange(LOG_ERROR, f->id, "the judge said %u", f->type);
}

/* The text of a lease: said once, to who asked, and kept nowhere. */
static void on_lease_make(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct lease_texts made = {.ntext = 0};
    struct id id;
    msg_get_id(&m, &id);
    uint8_t format = msg_get_u8(&m);
    if (msg_end(&m) != 0 || format >= LEASE_FORMAT_COUNT ||
        lease_derive(k->lease_root, &id, (enum lease_format)format, &made) != 0)
        log_error("a lease cannot be made as the ledger asks for it");
    struct dynbuf *b = chan_begin(k->ledger, M_LEASE_MADE, f->id);
    if (b != NULL) {
        msg_put_span(b, span_str(made.tag));
        msg_put_span(b, span_of(made.text, made.ntext));
        msg_put_span(b, span_of(made.secret, made.nsecret));
        (void)chan_commit(k->ledger);
    }
    explicit_bzero(&made, sizeof(made));
}

static void from_ledger(void *arg, struct chan *c, struct frame *f)
{
    struct keeper *k = arg;
    if (f->type == M_LEASE_MAKE) {
        on_lease_make(k, f);
        return;
    }
    if (f->type == M_GATE) {
        keeper_gate(k, f);
        return;
    }
    if (f->type == M_TELL) {
        keeper_tell(k, f);
        return;
    }
    struct msg_in m = msg_in(f->payload);
    struct span key = msg_get_span(&m, RELEASE_KEY);
    if (f->type != M_LEDGER_KEY || msg_end(&m) != 0 || releaser_ledger_key(k->releaser, key) != 0)
        log_error("the ledger said %u, which is no key", f->type);
}

static void from_carrier(void *arg, struct chan *c, struct frame *f)
{
    struct keeper *k = arg;
    if (f->type == M_SWAP)
        keeper_swap(k, f);
    else if (f->type == M_SWAP_DROP)
        tokens_drop(k->tokens, f->id);
    else
        log_error("the carrier said %u, which is no question", f->type);
}

/* Told to end, once nothing is on its way that would be lost: a token to be kept, or the record that it was. */
static void end_when_done(void *arg)
{
    struct keeper *k = arg;
    if (!fetches_rotate(k->fetches) && (k->ledger == NULL || chan_queued(k->ledger) == 0))
        exit(0);
    timer_set(k->end, ENDING_MS);
}

static void on_stop(void *arg)
{
    struct keeper *k = arg;
    if (k->fetches == NULL || (k->end == NULL && (k->end = timer_new(k->loop, end_when_done, k)) == NULL))
        exit(0);
    end_when_done(k);
}

static void from_fetcher(void *arg, struct chan *c, struct frame *f)
{
    struct keeper *k = arg;
    if (f->type == M_FETCHED && (f->id & GATE_FETCH) != 0) {
        keeper_gate_fetched(k, f);
        return;
    }
    if (f->type == M_FETCHED && (f->id & TELL_FETCH) != 0) {
        keeper_tell_fetched(k, f);
        return;
    }
    if (f->type == M_FETCHED && (f->id & SLACK_FETCH) != 0) {
        keeper_slack_fetched(k, f);
        return;
    }
    if (f->type == M_FETCHED && (f->id & OIDC_FETCH) != 0) {
        keeper_oidc_fetched(k, f);
        return;
    }
    if (f->type != M_FETCHED || fetch_answered(k->fetches, f->id, f->payload) != 0) {
        log_error("the fetcher said %u, which nobody asked", f->type);
        return;
    }
    parked_wake(k, f->id);
    keeper_tell_secrets(k);
}

static uint64_t fetch_now(void *arg)
{
    return loop_now(((struct keeper *)arg)->loop);
}

static int64_t fetch_wall(void *arg)
{
    return now_s(arg);
}

static int fetch_send(void *arg, uint64_t id, struct span payload)
{
    struct keeper *k = arg;
    return k->fetcher != NULL ? chan_send(k->fetcher, M_FETCH, id, payload) : -1;
}

static int fetch_keep(void *arg, struct span name, struct span value, struct err *e)
{
    struct keeper *k = arg;
    struct secret *s = secret_new(value);
    int bad = s == NULL ? err_set(e, "out of memory") : vault_set(k->keep.vault, name, s, 0, loop_wall(k->loop), e);
    secret_free(&s);
    if (bad == 0)
        keeper_note(k, "rotated", name, (unsigned)geteuid());
    return bad;
}

static struct chan **slot_of(struct keeper *k, unsigned peer)
{
    return peer == ROLE_JUDGE     ? &k->judge
           : peer == ROLE_CARRIER ? &k->carrier
           : peer == ROLE_LEDGER  ? &k->ledger
           : peer == ROLE_FETCHER ? &k->fetcher
           : peer == ROLE_DESK    ? &k->desk
                                  : NULL;
}

static void gone(void *arg, struct chan *c)
{
    struct keeper *k = arg;
    bool fetcher = c == k->fetcher;
    if (c == k->ledger) {
        releaser_ledger_gone(k->releaser); /* the next one has another key */
        keeper_gates_forget();
        keeper_tells_forget();
    }
    if (c == k->judge)
        parked_drop(k, NULL);
    if (c == k->desk)
        keeper_oidc_forget();
    chan_free(c == k->judge     ? &k->judge
              : c == k->carrier ? &k->carrier
              : c == k->desk    ? &k->desk
              : fetcher         ? &k->fetcher
                                : &k->ledger);
    if (!fetcher)
        return;
    fetches_lost(k->fetches);
    keeper_gates_lost(k);
    keeper_tells_lost(k);
    keeper_slack_lost();
    keeper_oidc_lost(k);
    parked_wake(k, 0);
}

static void on_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops[ROLE_COUNT] = {[ROLE_JUDGE] = {from_judge, gone},
                                                    [ROLE_CARRIER] = {from_carrier, gone},
                                                    [ROLE_LEDGER] = {from_ledger, gone},
                                                    [ROLE_FETCHER] = {from_fetcher, gone},
                                                    [ROLE_DESK] = {keeper_desk, gone}};
    struct keeper *k = arg;
    struct chan **slot = slot_of(k, peer);
    if (slot == NULL) {
        close(fd);
        return;
    }
    if (*slot != NULL)
        gone(k, *slot);
    *slot = chan_new(k->loop, fd, &ops[peer], k);
    if (peer == ROLE_DESK)
        keeper_tell_passkeys(k);
    if (peer != ROLE_LEDGER || k->ledger == NULL)
        return;
    struct secret *key = keep_data_key(&k->keep);
    struct dynbuf *b = key ? chan_begin(k->ledger, M_DATA_KEY, 0) : NULL;
    if (b != NULL) {
        msg_put_span(b, secret_bytes(key));
        (void)chan_commit(k->ledger);
    }
    secret_free(&key);
}

/* A new policy: map it, look it over, and only then forget the old one, with its files. Without it there is nothing
 * to release credentials by: the old one may name places that they are not to go to any more. The next keeper begins
 * anew. */
static void on_image(struct keeper *k, struct span payload, int fd)
{
    struct err e = {{0}};
    struct span image;
    struct digest announced;
    struct msg_in m = msg_in(payload);
    msg_get_digest(&m, &announced);
    if (memfd_map(fd, IMAGE_MAX, &image) != 0)
        log_die("the policy image cannot be mapped, or is not a memfd with all its seals");
    struct policy *p = policy_open(image, &e);
    if (p == NULL)
        log_die("the policy image cannot be opened: %s", e.text);
    if (msg_end(&m) != 0 || !span_eq(policy_digest(p), span_of(announced.b, DIGEST_BYTES)))
        log_die("the policy image is another one than announced");
    releaser_policy(k->releaser, p);
    fetches_policy(k->fetches, p);
    sources_switch(k->sources, &announced);
    policy_close(k->policy);
    memfd_unmap(&k->image);
    k->policy = p;
    k->image = image;
    keeper_tell_secrets(k);
}

static void on_frame(void *arg, struct frame *f)
{
    struct keeper *k = arg;
    struct msg_in m = msg_in(f->payload);
    struct err e = {{0}};
    int fd = frame_take_fd(f, 0);
    if (fd < 0) {
        if (f->type == M_IMAGE)
            log_die("a policy came without its image");
        if (f->type == M_TELL_PLACE)
            keeper_tell_place(k, f);
        return;
    }
    if (f->type == M_SOURCE) {
        struct digest policy;
        msg_get_digest(&m, &policy);
        unsigned kind = msg_get_u8(&m);
        struct span path = msg_get_span(&m, SOURCES_PATH);
        if (msg_end(&m) != 0 || (kind != SOURCE_FILE && kind != SOURCE_SYSTEMD)) {
            close(fd);
            return;
        }
        if (sources_add_file(k->sources, &policy, (enum source_kind)kind, path, fd, &e) != 0)
            log_warn("a credential's source file is refused: %s", e.text);
    } else if (f->type == M_LISTEN) {
        keeper_door_open(k, fd);
    } else {
        if (f->type == M_IMAGE)
            on_image(k, f->payload, fd);
        close(fd);
    }
}

static void on_config(void *arg, struct span key, struct span value)
{
    struct keeper *k = arg;
    if (span_eq(key, SPAN("owner_uid")) && span_u64(value, UINT32_MAX, &k->owner) != 0)
        log_die("owner_uid is not a number");
    if (span_eq(key, SPAN("master_key")) && (k->master_from = master_from(value)) == SOURCE_NONE)
        log_die("the master key is where this keeper does not look");
    if (span_eq(key, SPAN("desk_url")))
        keeper_site(k, value);
    (void)keeper_oidc_setting(key, value);
}

static void open_keep(struct keeper *k)
{
    struct err e = {{0}};
    struct secret *master = NULL;
    if (k->master_from != SOURCE_NONE &&
        (master = master_read(k->master_from, role_config_fd(k->role, 1), (unsigned)k->owner, &e)) == NULL)
        log_die("master_key: %s", e.text);
    if (keep_open(&k->keep, k->dir, master, (int64_t)time(NULL), &e) != 0)
        log_die("%s", e.text);
    secret_free(&master);
    if ((k->passkeys = passkeys_open(k->dir, k->keep.master, &k->site, &e)) == NULL)
        log_die("%s", e.text);
}

static void say_ca(struct keeper *k)
{
    struct dynbuf pem;
    dynbuf_init(&pem, CA_PEM_MAX);
    struct dynbuf *b = ca_pem(k->keep.ca, &pem) == 0 ? chan_begin(role_parent(k->role), M_CA, 0) : NULL;
    if (b == NULL)
        log_die("the CA's certificate cannot be written");
    msg_put_span(b, dynbuf_span(&pem));
    (void)chan_commit(role_parent(k->role));
    dynbuf_free(&pem);
}

int main(void)
{
    static const struct role_ops ops = {.frame = on_frame, .peer = on_peer, .config = on_config, .stop = on_stop};
    static char dir[64];
    static const char *const rw[] = {dir, NULL};
    static const struct fetch_ops fetching = {fetch_now, fetch_wall, fetch_send, fetch_keep};
    static const struct wall wall = {.calls = WALL_FILES | WALL_ACCEPT, .rw_dirs = rw};
    struct keeper *k = &keeper;
    struct err e = {{0}};
    if ((k->loop = loop_new()) == NULL)
        log_die("no event loop");
    k->role = role_start("keeper", k->loop, &ops, k);
    k->dir = role_config_fd(k->role, 0);
    snprintf(dir, sizeof(dir), "/proc/self/fd/%d", k->dir);
    /* role_confine wipes the environment, in which a credential may lie. */
    if ((k->sources = sources_new((unsigned)k->owner)) == NULL || sources_take_env(k->sources, environ, &e) != 0)
        log_die("the keeper cannot start: %s", k->sources ? e.text : "out of memory");
    role_confine(k->role, &wall);
    open_keep(k);
    sources_store(k->sources, k->keep.vault);
    k->mint = mint_new(k->keep.ca);
    k->fetches = fetches_new(k->sources, &fetching, k);
    sources_fetches(k->sources, k->fetches);
    k->tokens = tokens_new();
    k->releaser = releaser_new(k->sources, k->fetches, k->tokens);
    if (k->releaser != NULL)
        releaser_passkeys(k->releaser, k->passkeys);
    k->lease_root = lease_root(k->keep.master);
    k->lease_keys = signer_new();
    if (k->lease_keys == NULL || k->releaser == NULL || k->mint == NULL || k->fetches == NULL ||
        k->lease_root == NULL || k->tokens == NULL)
        log_die("the keeper cannot start: out of memory");
    say_ca(k);
    role_ready(k->role);
    return loop_run(k->loop) == 0 ? 0 : 1;
}
