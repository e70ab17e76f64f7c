#include "broker/models/fault.h"

#include <stdio.h>

#include "common/text/utf8.h"
#include "common/time/instant.h"

enum { BODY_ARENA_MAX = 16 * 1024 * 1024, BACKOFF_MS = 500, BACKOFF_MAX_MS = 30 * 1000, BACKOFF_DOUBLES = 6 };

static const char *const names[] = {[FAULT_NONE] = "",
                                    [FAULT_REQUEST] = "request",
                                    [FAULT_WINDOW] = "window",
                                    [FAULT_REFUSED] = "refused",
                                    [FAULT_GONE] = "gone",
                                    [FAULT_QUOTA] = "quota",
                                    [FAULT_RATE] = "rate",
                                    [FAULT_OVERLOADED] = "overloaded",
                                    [FAULT_SERVER] = "server",
                                    [FAULT_CUT] = "cut",
                                    [FAULT_UNREACHED] = "unreached",
                                    [FAULT_BROKEN] = "broken",
                                    [FAULT_TOO_LARGE] = "too-large"};

const char *fault_name(enum fault_kind k)
{
    return (size_t)k < sizeof(names) / sizeof(names[0]) ? names[k] : "";
}

/* Whole characters, as many as there is room for, no control character among them. */
static void copy(char *to, size_t cap, struct span s)
{
    size_t n = utf8_run(span_first(s, cap - 1));
    for (size_t i = 0; i < n; i++)
        to[i] = s.p[i] < 0x20 || s.p[i] == 0x7f ? ' ' : (char)s.p[i];
    to[n] = '\0';
}

void fault_set(struct fault *f, enum fault_kind k, const char *words)
{
    *f = (struct fault){.kind = k};
    copy(f->words, sizeof(f->words), span_str(words));
}

/* ---- what providers call it ---- */

static const struct {
    const char *code;
    enum fault_kind kind;
    bool vague; /* it says less than a status does */
} codes[] = {
    {"overloaded_error", FAULT_OVERLOADED, false},
    {"engine_overloaded_error", FAULT_OVERLOADED, false},
    {"rate_limit_error", FAULT_RATE, false},
    {"rate_limit_exceeded", FAULT_RATE, false},
    {"rate_limit_reached_error", FAULT_RATE, false},
    {"insufficient_quota", FAULT_QUOTA, false},
    {"exceeded_current_quota_error", FAULT_QUOTA, false},
    {"billing_error", FAULT_QUOTA, false},
    {"billing_hard_limit_reached", FAULT_QUOTA, false},
    {"context_length_exceeded", FAULT_WINDOW, false},
    {"request_too_large", FAULT_WINDOW, false},
    {"model_not_found", FAULT_GONE, false},
    {"not_found_error", FAULT_GONE, false},
    {"invalid_api_key", FAULT_REFUSED, false},
    {"authentication_error", FAULT_REFUSED, false},
    {"permission_error", FAULT_REFUSED, false},
    {"timeout_error", FAULT_SERVER, false},
    {"server_error", FAULT_SERVER, true},
    {"api_error", FAULT_SERVER, true},
    {"internal_server_error", FAULT_SERVER, true},
    {"invalid_request_error", FAULT_REQUEST, true},
    {"invalid_prompt", FAULT_REQUEST, true},
    {"content_filter", FAULT_REQUEST, true},
};

static enum fault_kind of_status(unsigned status)
{
    switch (status) {
    case 0: return FAULT_NONE;
    case 401:
    case 403: return FAULT_REFUSED;
    case 402: return FAULT_QUOTA;
    case 404: return FAULT_GONE;
    case 408:
    case 409:
    case 425: return FAULT_SERVER; /* as the providers' own clients have it: worth another try */
    case 413: return FAULT_WINDOW;
    case 429: return FAULT_RATE;
    case 503:
    case 529: return FAULT_OVERLOADED;
    default: break;
    }
    if (status >= 500)
        return FAULT_SERVER;
    return status >= 400 ? FAULT_REQUEST : FAULT_BROKEN;
}

/* A code, also when it is a word of the message alone: "prompt is too long" has none of its own. */
static enum fault_kind of_words(struct span words)
{
    static const char *const window[] = {"prompt is too long", "maximum context length", "context window"};
    for (size_t i = 0; i < sizeof(window) / sizeof(window[0]); i++)
        if (span_find(words, span_str(window[i])) < words.n)
            return FAULT_WINDOW;
    return FAULT_NONE;
}

static bool take_code(struct fault *f, struct span code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (!span_eq(code, span_str(codes[i].code)))
            continue;
        if (!codes[i].vague || f->status == 0)
            f->kind = codes[i].kind;
        return true;
    }
    return false;
}

void fault_of_error(struct fault *f, const struct json *error)
{
    struct span code = json_text(error, SPAN("code")), type = json_text(error, SPAN("type"));
    struct span words = error && error->type == JSON_STRING ? error->text : json_text(error, SPAN("message"));
    f->kind = of_status(f->status);
    if (!take_code(f, code))
        (void)take_code(f, type);
    if ((f->kind == FAULT_REQUEST || f->kind == FAULT_NONE) && of_words(words) != FAULT_NONE)
        f->kind = of_words(words);
    if (f->kind == FAULT_NONE) /* in a stream, by a name that we do not know */
        f->kind = FAULT_SERVER;
    copy(f->code, sizeof(f->code), code.n ? code : type);
    copy(f->words, sizeof(f->words), words);
}

/* ---- how long to wait ---- */

static bool number_at(struct span s, size_t at, size_t n, uint64_t *v)
{
    *v = 0;
    for (size_t i = at; i < at + n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        *v = *v * 10 + (uint64_t)(s.p[i] - '0');
    }
    return true;
}

/* Sun, 06 Nov 1994 08:49:37 GMT, the one form that is written today (RFC 9110 section 5.6.7). */
static bool date_of(struct span s, uint64_t *ms)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t day, year, h, min, sec, month = 0;
    if (s.n != 29 || s.p[3] != ',' || s.p[4] != ' ' || s.p[7] != ' ' || s.p[11] != ' ' || s.p[16] != ' ' ||
        s.p[19] != ':' || s.p[22] != ':' || !span_ends(s, SPAN(" GMT")))
        return false;
    if (!number_at(s, 5, 2, &day) || !number_at(s, 12, 4, &year) || !number_at(s, 17, 2, &h) ||
        !number_at(s, 20, 2, &min) || !number_at(s, 23, 2, &sec))
        return false;
    while (month < 12 && memcmp(s.p + 8, months + 3 * month, 3) != 0)
        month++;
    if (month == 12 || year < 1970 || day == 0 || day > instant_days_of_month((int64_t)year, (unsigned)month + 1) ||
        h > 23 || min > 59 || sec > 60)
        return false;
    uint64_t days = (uint64_t)instant_days_to((int64_t)year, (unsigned)month + 1, (unsigned)day);
    *ms = (((days * 24 + h) * 60 + min) * 60 + sec) * 1000;
    return true;
}

bool fault_wait(struct span retry_after, struct span retry_after_ms, uint64_t now_ms, uint64_t *wait_ms)
{
    uint64_t v = 0;
    if (span_u64(span_first(retry_after_ms, span_index(retry_after_ms, '.')), UINT64_C(1) << 40, wait_ms) == 0)
        return true;
    if (instant_seconds(retry_after, wait_ms) == 0)
        return true;
    if (!date_of(retry_after, &v))
        return false;
    *wait_ms = v > now_ms ? v - now_ms : 0;
    return true;
}

void fault_of_answer(struct fault *f, const struct fault_answer *a, uint64_t now_ms)
{
    struct arena arena;
    arena_init(&arena, BODY_ARENA_MAX);
    *f = (struct fault){.status = a->status};
    const struct json *j = a->body.n <= FAULT_BODY_MAX ? json_parse(a->body, &arena) : NULL;
    const struct json *error = json_get(j, SPAN("error"));
    fault_of_error(f, error ? error : j);
    if (f->words[0] == '\0')
        (void)snprintf(f->words, sizeof(f->words), "the model's server answered %u", a->status);
    if (span_ieq(a->should_retry, SPAN("true")))
        f->said = SAID_AGAIN;
    else if (span_ieq(a->should_retry, SPAN("false")))
        f->said = SAID_FINAL;
    f->waits = fault_wait(a->retry_after, a->retry_after_ms, now_ms, &f->wait_ms);
    arena_free(&arena);
}

/* ---- what next ---- */

/* Might the same request pass a little later? */
static bool passes(const struct fault *f)
{
    if (f->said != SAID_NOTHING)
        return f->said == SAID_AGAIN;
    switch (f->kind) {
    case FAULT_RATE:
    case FAULT_OVERLOADED:
    case FAULT_SERVER:
    case FAULT_UNREACHED:
    case FAULT_CUT:
    case FAULT_BROKEN: return true;
    default: return false;
    }
}

/* Might another model take it? What is wrong with the request itself is wrong everywhere. */
static bool is_the_models(enum fault_kind k)
{
    switch (k) {
    case FAULT_NONE:
    case FAULT_REQUEST:
    case FAULT_WINDOW:
    case FAULT_TOO_LARGE: return false;
    default: return true;
    }
}

static uint64_t wait_of(const struct fault *f, const struct fault_place *p)
{
    if (f->waits && f->wait_ms > 0) /* never shorter than was said */
        return f->wait_ms > FAULT_WAIT_MAX_MS ? f->wait_ms : f->wait_ms + p->dice % (f->wait_ms / 8 + 1);
    unsigned doubles = p->tries > 0 ? p->tries - 1 : 0;
    uint64_t full = (uint64_t)BACKOFF_MS << (doubles < BACKOFF_DOUBLES ? doubles : BACKOFF_DOUBLES);
    if (full > BACKOFF_MAX_MS)
        full = BACKOFF_MAX_MS;
    return full / 2 + p->dice % (full / 2 + 1);
}

bool fault_of_all(enum fault_kind kind)
{
    return kind == FAULT_GONE || kind == FAULT_OVERLOADED || kind == FAULT_SERVER || kind == FAULT_UNREACHED;
}

struct fault_next fault_next(const struct fault *f, const struct fault_place *p)
{
    struct fault_next next = {.supersedes = p->shown};
    uint64_t wait = wait_of(f, p);
    bool more = p->all_tries < FAULT_ALL_TRIES_MAX;
    bool again = more && passes(f) && p->tries < FAULT_TRIES_MAX && wait <= FAULT_WAIT_MAX_MS;
    bool other = more && is_the_models(f->kind) && p->other && !p->shown;
    if (again && (wait <= FAULT_SOON_MS || !other)) {
        next.step = STEP_AGAIN;
        next.wait_ms = wait;
    } else if (other) {
        next.step = STEP_OTHER;
    } else if (passes(f)) {
        next.wait_ms = wait;
    }
    return next;
}
