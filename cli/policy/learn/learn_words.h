/* policy learn: what it says of what it did not propose. Codes are for programs and stay; words are for people. */
#ifndef CLI_POLICY_LEARN_LEARN_WORDS_H
#define CLI_POLICY_LEARN_LEARN_WORDS_H

struct learn_words {
    const char *code, *words;
};

/* Why there is no rule for a request. */
enum left {
    LEFT_NOT = 0,
    LEFT_EFFECT,
    LEFT_WEBSOCKET,
    LEFT_CUT,
    LEFT_PLACE,
    LEFT_PATH,
    LEFT_PATH_SECRET,
    LEFT_QUERY,
    LEFT_QUERY_SECRET,
    LEFT_REFS_UNKNOWN,
    LEFT_REFS,
    LEFT_REPOSITORY,
    LEFT_PACK,
    LEFT_RESIDENCY,
    LEFT_UNSURE,
    LEFT_LABELS,
    LEFT_REFUSED,
    LEFT_KINDS,
    LEFTS
};
const struct learn_words *learn_left(enum left why);

/* Whether its rule has use:. Only USE_NONE and USE_GIVEN send what was seen. */
enum use {
    USE_NONE = 0,
    USE_GIVEN,
    USE_NO_POLICY,
    USE_UNKNOWN,
    USE_NOT_HERE,
    USE_CLEARTEXT,
    USE_SEVERAL,
    USE_SOMETIMES,
    USES
};
const struct learn_words *learn_use_words(enum use u);

/* What else a reviewer of its rule has to know. */
enum doubt { DOUBT_REFUSED = 0, DOUBT_EXPIRED, DOUBT_UNSENT, DOUBTS };
const struct learn_words *learn_doubt(enum doubt d);

#endif
