/* Passwords: what is kept of one is what crypt(3) made of it (yescrypt), and how often one may be tried. */
#ifndef WEB_APPROVAL_PEOPLE_PASSWORD_H
#define WEB_APPROVAL_PEOPLE_PASSWORD_H

#include "common/id.h"

enum { PASSWORD_LEAST = 10, PASSWORD_MOST = 256, PASSWORD_KEPT = 256 };

/* NULL, or why it may not be one, in words. */
const char *password_objection(struct span password);
int password_make(struct span password, char kept[PASSWORD_KEPT]) MUSTCHECK;
/* kept empty: nobody's, and it takes as long as to say no to anybody's. */
bool password_is(struct span password, struct span kept);

/* Wrong ones: a few of a name, then a pause that grows; and of all names together so many a minute. Names are kept as
 * digests, so that the table says nothing about who tried. */
enum {
    ATTEMPT_NAMES = 64,
    ATTEMPT_FREE = 5,
    ATTEMPT_PAUSE_MS = 30 * 1000,
    ATTEMPT_PAUSE_MOST_MS = 15 * 60 * 1000,
    ATTEMPT_ALL = 30, /* tries a minute */
};
struct attempts {
    struct {
        struct digest name;
        unsigned wrong;
        uint64_t until_ms, last_ms;
    } of[ATTEMPT_NAMES];
    uint64_t minute;
    unsigned tried;
};
/* May this name be tried now? It counts among those of this minute. now: ms of a steady clock. */
bool attempts_may(struct attempts *a, struct span name, uint64_t now);
void attempts_over(struct attempts *a, struct span name, bool right, uint64_t now);

#endif
