#include "proxy/keeper/value.h"

#include "common/id.h"
#include "proxy/keeper/signer/signer.h"

_Static_assert(SIGNER_PART_MIN == (int)VALUE_MIN, "what is shorter turns up by chance");

struct span value_trim(struct span raw)
{
    if (raw.n && raw.p[raw.n - 1] == '\n')
        raw.n--;
    if (raw.n && raw.p[raw.n - 1] == '\r')
        raw.n--;
    return raw;
}

static bool is_key(struct span v)
{
    return span_starts(v, SPAN("-----BEGIN ")) && span_find(v, SPAN("PRIVATE KEY-----\n")) < v.n;
}

bool value_is_pem(struct span v)
{
    return is_key(v) && span_find(v, SPAN("-----BEGIN CERTIFICATE-----\n")) < v.n;
}

int value_check(struct span v, struct err *e)
{
    bool lines = is_key(v);
    if (v.n == 0)
        return err_set(e, "the value is empty");
    if (v.n < VALUE_MIN)
        return err_set(e, "the value is shorter than %d bytes: answers could not be scrubbed of it", VALUE_MIN);
    if (v.n > VALUE_MAX)
        return err_set(e, "the value is longer than %d bytes", VALUE_MAX);
    for (size_t i = 0; i < v.n; i++)
        if ((v.p[i] < 0x20 && !(lines && v.p[i] == '\n')) || v.p[i] == 0x7f)
            return err_set(e, "the value has a control character (a line end, a NUL or the like) at byte %zu", i);
    if (v.p[0] == ' ' || v.p[v.n - 1] == ' ')
        return err_set(e, "the value begins or ends with a space");
    return 0;
}

struct span value_header(const struct credential *c)
{
    return c->certificate || c->sign != SIGN_NONE || slot_is_marked(c->slot) ? SPAN_NONE
           : c->header.n                                                     ? c->header
                                                                             : SPAN("Authorization");
}

static bool is_basic(const struct credential *c)
{
    return c->basic || c->basic_user.n != 0;
}

struct secret *value_basic(const struct credential *c, struct span v)
{
    if (!is_basic(c))
        return NULL;
    size_t head = c->basic_user.n ? c->basic_user.n + 1 : 0;
    struct secret *s = secret_room(head + v.n);
    if (s == NULL)
        return NULL;
    uint8_t *to = secret_fill(s);
    if (head) {
        memcpy(to, c->basic_user.p, c->basic_user.n);
        to[c->basic_user.n] = ':';
    }
    memcpy(to + head, v.p, v.n);
    return s;
}

struct span value_password(const struct credential *c, struct span v)
{
    struct span user, password;
    if (!is_basic(c) || c->basic_user.n || !span_cut(v, ':', &user, &password))
        return SPAN_NONE;
    if (password.n == 0) /* a key goes as the user of some services */
        password = user;
    return password.n < VALUE_MIN ? SPAN_NONE : password;
}

/* ---- what its slot can carry ---- */

static bool all_in(struct span v, const char *also)
{
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i] | 0x20;
        if (!(c >= 'a' && c <= 'z') && !(v.p[i] >= '0' && v.p[i] <= '9') && strchr(also, v.p[i]) == NULL)
            return false;
    }
    return true;
}

/* RFC 6265 section 4.1.1, without quotes. */
#define COOKIE_MARKS "!#$%&'()*+-./:<=>?@[]^_`{|}~"

/* What stands in the path of a URL as it is; with an escape for all else these are forms that the scrub knows
 * (encodeURI without '?' and '#', which are not there, and RFC 3986's unreserved). */
#define PATH_MARKS       "-._~!'()*;,/:@&=+$"
#define UNRESERVED_MARKS "-._~"

/* How many bytes it is; to: NULL, or room for them. */
static size_t escape(enum slot_kind k, struct span v, uint8_t *to)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *marks = k == SLOT_PATH ? PATH_MARKS : UNRESERVED_MARKS;
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i], out[3] = {c};
        size_t bytes = 1;
        if (k == SLOT_JSON && (c == '"' || c == '\\')) {
            out[0] = '\\';
            out[1] = c;
            bytes = 2;
        } else if (k != SLOT_JSON && !all_in(span_of(&c, 1), marks)) {
            out[0] = '%';
            out[1] = (uint8_t)digits[c >> 4];
            out[2] = (uint8_t)digits[c & 15];
            bytes = 3;
        }
        if (to != NULL)
            memcpy(to + n, out, bytes);
        n += bytes;
    }
    return n;
}

static int fits_slot(const struct credential *c, struct span v, struct err *e)
{
    for (size_t i = 0; i < v.n && !c->certificate && !is_basic(c); i++)
        if (v.p[i] >= 0x80)
            return err_set(e, "the value has bytes beyond ASCII, which no request can carry for sure");
    if (c->slot == SLOT_COOKIE && !all_in(v, COOKIE_MARKS))
        return err_set(e, "the value has a character that no cookie can carry: a blank, a quote, ',', ';' or '\\'");
    if (c->slot == SLOT_PATH && (span_index(v, '?') < v.n || span_index(v, '#') < v.n))
        return err_set(e, "the value has a '?' or a '#', which ends the path of a URL");
    bool target = c->slot == SLOT_QUERY || c->slot == SLOT_PATH;
    if (target && escape(c->slot, v, NULL) + 3 * c->format.n > HTTP_TARGET_MAX - SLOT_TARGET_MAX)
        return err_set(e, "the value, as a URL carries it, is longer than 8 KiB");
    return 0;
}

int value_fits(const struct credential *c, struct span v, struct err *e)
{
    struct signer_pair pair;
    if (c->certificate && !value_is_pem(v))
        return err_set(e, "the value is no PEM text with a private key and the chain of its certificate");
    if (!c->certificate && span_index(v, '\n') < v.n)
        return err_set(e, "the value is PEM text, which no request can carry");
    if (c->sign != SIGN_NONE)
        return signer_parts(c, v, &pair, e);
    if (fits_slot(c, v, e) != 0)
        return -1;
    if (!is_basic(c) || c->basic_user.n)
        return 0;
    if (span_index(v, ':') == v.n)
        return err_set(e, "the value must be user:password, for the policy names no user");
    if (value_password(c, v).n == 0)
        return err_set(e, "the password in it is shorter than %d bytes: answers could not be scrubbed of it",
                       VALUE_MIN);
    return 0;
}

/* ---- as its slot carries it ---- */

/* Takes s. */
static struct secret *escaped(enum slot_kind k, struct secret *s)
{
    struct secret *out = s ? secret_room(escape(k, secret_bytes(s), NULL)) : NULL;
    if (out != NULL)
        (void)escape(k, secret_bytes(s), secret_fill(out));
    secret_free(&s);
    return out;
}

static struct secret *render_basic(const struct credential *c, struct span v, struct err *e)
{
    struct secret *pair = NULL, *out = NULL;
    if (c->basic_user.n > 255 || span_index(c->basic_user, ':') != c->basic_user.n) {
        err_set(e, "the user of Basic has a colon in it or is too long");
        goto out;
    }
    if ((pair = value_basic(c, v)) == NULL) {
        err_set(e, "out of memory");
        goto out;
    }
    struct span p = secret_bytes(pair);
    struct secret *room = secret_room(6 + 4 * ((p.n + 2) / 3) + 1);
    if (room == NULL) {
        err_set(e, "out of memory");
        goto out;
    }
    memcpy(secret_fill(room), "Basic ", 6);
    size_t n = base64_encode(p, (char *)secret_fill(room) + 6);
    out = secret_new(span_of(secret_fill(room), 6 + n)); /* without the NUL */
    secret_free(&room);
out:
    secret_free(&pair);
    return out;
}

struct secret *value_render(const struct credential *c, struct span v, struct err *e)
{
    if (c->sign != SIGN_NONE) {
        err_set(e, "the value is to sign with, and goes into no request");
        return NULL;
    }
    if (value_fits(c, v, e) != 0)
        return NULL;
    if (c->certificate)
        return secret_new(v);
    if (is_basic(c))
        return render_basic(c, v, e);
    struct span format = c->format.n ? c->format : SPAN("{}");
    size_t at = span_find(format, SPAN("{}"));
    if (at == format.n || format.n > 256 || span_find(span_from(format, at + 2), SPAN("{}")) != format.n - at - 2) {
        err_set(e, "the format must have {} in it, once");
        return NULL;
    }
    struct secret *out = secret_room(format.n - 2 + v.n);
    if (out == NULL) {
        err_set(e, "out of memory");
        return NULL;
    }
    uint8_t *to = secret_fill(out);
    memcpy(to, format.p, at);
    memcpy(to + at, v.p, v.n);
    memcpy(to + at + v.n, format.p + at + 2, format.n - at - 2);
    if (!slot_is_marked(c->slot))
        return out;
    out = escaped(c->slot, out);
    if (out == NULL)
        err_set(e, "out of memory");
    return out;
}
