#include "web-approval/people/password.h"

#include <crypt.h>
#include <stdlib.h>
#include <string.h>

/* A method and a cost as those kept have: saying no to nobody is to take as long. */
#define NOBODY "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$4SX8XhUABrS9YGCAJLzA1cbZETu46bElQ2mRAaXzp95"

const char *password_objection(struct span p)
{
    if (p.n < PASSWORD_LEAST)
        return "a password has at least 10 characters; a few words are easy to remember";
    if (p.n > PASSWORD_MOST || memchr(p.p, '\0', p.n) != NULL)
        return "a password has at most 256 bytes, and no zero byte";
    return NULL;
}

static bool hash(struct span p, const char *setting, char out[PASSWORD_KEPT])
{
    struct crypt_data *d = calloc(1, sizeof(*d));
    char text[PASSWORD_MOST + 1] = "";
    bool ok = false;

    if (d != NULL && p.n <= PASSWORD_MOST && memchr(p.n ? p.p : (const uint8_t *)"", '\0', p.n) == NULL) {
        if (p.n)
            memcpy(text, p.p, p.n);
        const char *made = crypt_rn(text, setting, d, (int)sizeof(*d));
        ok = made != NULL && made[0] == '$' && strlen(made) < PASSWORD_KEPT;
        if (ok)
            memcpy(out, made, strlen(made) + 1);
    }
    explicit_bzero(text, sizeof(text));
    if (d != NULL)
        explicit_bzero(d, sizeof(*d));
    free(d);
    return ok;
}

int password_make(struct span p, char kept[PASSWORD_KEPT])
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];

    if (password_objection(p) != NULL || crypt_gensalt_rn("$y$", 0, NULL, 0, setting, sizeof(setting)) == NULL)
        return -1;
    return hash(p, setting, kept) ? 0 : -1;
}

bool password_is(struct span p, struct span kept)
{
    char setting[PASSWORD_KEPT] = NOBODY, made[PASSWORD_KEPT] = "";
    bool somebody = kept.n > 0 && kept.n < sizeof(setting);

    if (somebody) {
        memcpy(setting, kept.p, kept.n);
        setting[kept.n] = '\0';
    }
    bool ok = hash(p, setting, made) && span_eq_consttime(span_str(made), span_str(setting));
    explicit_bzero(made, sizeof(made));
    return ok && somebody;
}

static size_t slot(const struct attempts *a, const struct digest *d)
{
    size_t old = 0;

    for (size_t i = 0; i < ATTEMPT_NAMES; i++) {
        if (memcmp(&a->of[i].name, d, sizeof(*d)) == 0)
            return i;
        if (a->of[i].last_ms < a->of[old].last_ms)
            old = i;
    }
    return old;
}

bool attempts_may(struct attempts *a, struct span name, uint64_t now)
{
    struct digest d;

    digest_of(name, &d);
    size_t i = slot(a, &d);
    if (memcmp(&a->of[i].name, &d, sizeof(d)) == 0 && a->of[i].until_ms > now)
        return false;
    if (a->minute != now / 60000)
        a->tried = 0;
    a->minute = now / 60000;
    return a->tried++ < ATTEMPT_ALL;
}

void attempts_over(struct attempts *a, struct span name, bool right, uint64_t now)
{
    struct digest d;

    digest_of(name, &d);
    size_t i = slot(a, &d);
    if (memcmp(&a->of[i].name, &d, sizeof(d)) != 0)
        memset(&a->of[i], 0, sizeof(a->of[i]));
    if (right) {
        memset(&a->of[i], 0, sizeof(a->of[i]));
        return;
    }
    a->of[i].name = d;
    a->of[i].last_ms = now;
    if (++a->of[i].wrong < ATTEMPT_FREE)
        return;
    unsigned more = a->of[i].wrong - ATTEMPT_FREE;
    uint64_t pause = more < 10 ? (uint64_t)ATTEMPT_PAUSE_MS << more : ATTEMPT_PAUSE_MOST_MS;
    a->of[i].until_ms = now + (pause < ATTEMPT_PAUSE_MOST_MS ? pause : ATTEMPT_PAUSE_MOST_MS);
}
