#include "common/text/person.h"

#include <pwd.h>
#include <stdio.h>

static bool numbers_stay;

void person_numbers_stay(void)
{
    numbers_stay = true;
}

struct span person_name(struct span who, char room[PERSON_NAME_MAX])
{
    const struct passwd *pw;
    uint64_t uid;

    if (numbers_stay || !span_starts(who, SPAN("uid ")) || span_u64(span_from(who, 4), UINT32_MAX, &uid) != 0)
        return who;
    pw = getpwuid((uid_t)uid);
    int n = pw ? snprintf(room, PERSON_NAME_MAX, "%s", pw->pw_name) : -1;
    return n > 0 && n < PERSON_NAME_MAX ? span_of(room, (size_t)n) : who;
}
