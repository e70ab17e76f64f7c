#include "proxy/keeper/tell/slack.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/dynbuf.h"
#include "common/json/json.h"
#include "proxy/tell/wire_tell.h"

/* ---- is it Slack's? ---- */

static int mac_of(struct span key, struct span stamp, struct span body, struct digest *out)
{
    struct dynbuf b;
    unsigned n = 0;
    dynbuf_init(&b, SLACK_BODY_MAX + 64);
    (void)dynbuf_add(&b, SPAN("v0:"));
    (void)dynbuf_add(&b, stamp);
    (void)dynbuf_add_byte(&b, ':');
    (void)dynbuf_add(&b, body);
    bool ok =
        dynbuf_ok(&b) && HMAC(EVP_sha256(), key.p, (int)key.n, b.p, b.n, out->b, &n) != NULL && n == DIGEST_BYTES;
    dynbuf_free(&b);
    return ok ? 0 : -1;
}

int slack_signed(struct span key, struct span stamp, struct span signature, struct span body, uint64_t now_s,
                 struct slack_mark *out, struct err *e)
{
    struct digest said, mac;
    uint64_t at;
    if (key.n < SLACK_KEY_MIN || key.n > SLACK_KEY_MAX)
        return err_set(e, "the stored signing secret is not of %d to %d bytes", SLACK_KEY_MIN, SLACK_KEY_MAX);
    if (span_u64(stamp, UINT32_MAX, &at) != 0 || at + SLACK_SKEW_S < now_s || at > now_s + SLACK_SKEW_S)
        return err_set(e, "its time is not within %d minutes of now", SLACK_SKEW_S / 60);
    if (signature.n != 3 + 2 * DIGEST_BYTES || !span_starts(signature, SPAN("v0=")) ||
        hex_parse(span_from(signature, 3), said.b, DIGEST_BYTES) != 0 || body.n > SLACK_BODY_MAX ||
        mac_of(key, stamp, body, &mac) != 0 || CRYPTO_memcmp(said.b, mac.b, DIGEST_BYTES) != 0)
        return err_set(e, "its signature is not Slack's");
    *out = (struct slack_mark){.stamp = at, .mac = mac};
    return 0;
}

int slack_once(struct slack_seen *seen, const struct slack_mark *mark, uint64_t now_s, enum slack_said *why,
               struct err *e)
{
    size_t free = SLACK_SEEN_MAX;
    for (size_t i = 0; i < SLACK_SEEN_MAX; i++) {
        if (seen->row[i].stamp + SLACK_SKEW_S < now_s)
            seen->row[i].stamp = 0;
        *why = SLACK_REFUSED;
        if (seen->row[i].stamp == 0)
            free = i;
        else if (memcmp(&seen->row[i].mac, &mark->mac, sizeof(mark->mac)) == 0)
            return err_set(e, "it was taken already");
    }
    *why = SLACK_NOT_NOW;
    if (free == SLACK_SEEN_MAX)
        return err_set(e, "too many came in the last minutes; try again in a few");
    seen->row[free] = *mark;
    return 0;
}

/* ---- what does it say? ---- */

static int decode(struct span in, struct arena *a, struct span *out)
{
    uint8_t *p = arena_alloc(a, in.n + 1);
    size_t n = 0;
    for (size_t i = 0; p != NULL && i < in.n; i++) {
        int c = in.p[i] == '+' ? ' ' : in.p[i] == '%' ? hex_number(span_from(in, i + 1), 2) : in.p[i];
        if (c < 0)
            return -1;
        i += in.p[i] == '%' ? 2 : 0;
        p[n++] = (uint8_t)c;
    }
    *out = span_of(p, n);
    return p != NULL ? 0 : -1;
}

/* The one that was pressed: Slack says them one at a time. */
static const struct json *pressed(const struct json *payload)
{
    const struct json *all = json_get(payload, SPAN("actions"));
    return span_eq(json_text(payload, SPAN("type")), SPAN("block_actions")) && all != NULL &&
                   all->type == JSON_ARRAY && all->count == 1 && all->child->type == JSON_OBJECT
               ? all->child
               : NULL;
}

static bool is_null(const struct json *j)
{
    return j != NULL && j->type == JSON_NULL;
}

int slack_read(struct span body, struct arena *a, struct slack_press *out, struct err *e)
{
    static const struct span field = SPAN("payload=");
    struct span text;
    struct id id;
    *out = (struct slack_press){.deny = false};
    if (!span_starts(body, field) || span_index(body, '&') < body.n ||
        decode(span_from(body, field.n), a, &text) != 0)
        return err_set(e, "its body is not the form payload=");
    const struct json *j = json_parse(text, a), *one = pressed(j);
    if (j == NULL || j->type != JSON_OBJECT)
        return err_set(e, "its payload is no JSON");
    if (one == NULL || !span_eq(json_text(one, SPAN("type")), SPAN("button")) ||
        !span_eq(json_text(one, SPAN("action_id")), SPAN("deny")))
        return 0;
    struct span team = json_text(json_get(j, SPAN("team")), SPAN("id"));
    struct span user = json_text(json_get(j, SPAN("user")), SPAN("id"));
    const struct json *home = json_get(json_get(j, SPAN("user")), SPAN("team_id"));
    if (home != NULL && is_null(json_get(j, SPAN("team")))) /* of an app that a whole organization has */
        team = home->text;
    if (home != NULL && (home->type != JSON_STRING || !span_eq(home->text, team)))
        return err_set(e, "who pressed it is of another team than its message");
    out->ticket = json_text(one, SPAN("value"));
    out->answer = json_text(j, SPAN("response_url"));
    if (team.n > TELL_WHO_MAX || user.n > TELL_WHO_MAX || id_parse(out->ticket, &id) != 0)
        return err_set(e, "it does not say who pressed it, or for which request");
    out->who = arena_join(a, arena_join(a, team, SPAN("/")), user);
    if (!tell_slack_who_ok(out->who))
        return err_set(e, "it does not say who pressed it by the ids of their team and of themselves");
    out->deny = true;
    return 0;
}

bool slack_answer_ok(struct span url, struct span notify)
{
    struct tell_url u, own;
    if (url.n > SLACK_URL_MAX || tell_url_parse(url, &u) != 0)
        return false;
    if (span_eq(u.scheme, SPAN("https")) && span_eq(u.host, SPAN("hooks.slack.com")) && u.port == 443)
        return true;
    return tell_url_parse(notify, &own) == 0 && span_eq(u.scheme, own.scheme) && span_eq(u.host, own.host) &&
           u.port == own.port && (span_eq(u.scheme, SPAN("https")) || tell_url_is_loopback(&u));
}

void slack_answer(struct span words, bool replace, struct dynbuf *out)
{
    struct dynbuf text;
    struct jsonw w;
    dynbuf_init(&text, 8 * SLACK_WORDS_MAX);
    for (size_t i = 0; i < words.n; i++) /* the three characters by which its texts are controlled */
        (void)dynbuf_add(&text, words.p[i] == '&'   ? SPAN("&amp;")
                                : words.p[i] == '<' ? SPAN("&lt;")
                                : words.p[i] == '>' ? SPAN("&gt;")
                                                    : span_of(words.p + i, 1));
    jsonw_begin(&w, out);
    jsonw_object(&w);
    if (!replace)
        jsonw_kv(&w, "response_type", SPAN("ephemeral"));
    jsonw_kv_bool(&w, "replace_original", replace);
    jsonw_kv(&w, "text", dynbuf_span(&text));
    jsonw_end_object(&w);
    dynbuf_free(&text);
}
