#include "cli/policy/learn/learn_words.h"

const struct learn_words *learn_left(enum left why)
{
    static const struct learn_words words[LEFTS] = {
        [LEFT_EFFECT] = {"effect-not-recorded", "what it does is not recorded"},
        [LEFT_WEBSOCKET] = {"websocket", "a WebSocket: write the rule and what it may send yourself"},
        [LEFT_CUT] = {"path-cut", "its path is longer than the record"},
        [LEFT_PLACE] = {"odd-host-or-method", "its host or method has characters that no rule names"},
        [LEFT_PATH] = {"odd-path", "its path has more than one spelling, or what a pattern would take for others, or "
                                   "an empty query"},
        [LEFT_PATH_SECRET] = {"secret-in-path", "a part of its path looks like a secret, which belongs in no file"},
        [LEFT_QUERY] = {"odd-query", "its query is not made of plain names and values, each once"},
        [LEFT_QUERY_SECRET] = {"secret-in-query",
                               "a value of its query looks like a secret, which belongs in no file"},
        [LEFT_REFS_UNKNOWN] = {"refs-not-recorded", "a push of which the refs are not recorded"},
        [LEFT_REFS] = {"odd-refs", "a push of refs that cannot be listed"},
        [LEFT_REPOSITORY] = {"odd-repository", "its repository has characters that a pattern would take for others"},
        [LEFT_PACK] = {"pack-not-listed", "the policy does not list the pack that knows its operation"},
        [LEFT_RESIDENCY] = {"residency", "the regions of its sandbox's scopes do not reach there"},
        [LEFT_LABELS] = {"labels-not-known", "the policy asks for labels of their sandboxes, which are not known"},
        [LEFT_UNSURE] = {"not-exact", "an exact rule for it does not do what it should: it may be read in several "
                                      "ways"},
        [LEFT_REFUSED] = {"ticket-denied", "a read that waited for approval, and that an operator denied"},
        [LEFT_KINDS] = {"too-many-kinds", "beyond the kinds that are told apart"}};
    return &words[why];
}

const struct learn_words *learn_use_words(enum use u)
{
    static const struct learn_words words[USES] = {
        [USE_NO_POLICY] = {"credential-left-out", "and without --policy nothing says whether it may"},
        [USE_UNKNOWN] = {"credential-unknown", "which the policy does not have"},
        [USE_NOT_HERE] = {"credential-not-for-here", "which may not go there by its only:"},
        [USE_CLEARTEXT] = {"credential-cleartext", "which may not go there over http"},
        [USE_SEVERAL] = {"ambiguous-credential", "which are more than one: narrow it with --scope or --as"},
        [USE_SOMETIMES] = {"credential-sometimes", "but some were let through or held without it: narrow it with "
                                                   "--scope or --as"}};
    return &words[u];
}

const struct learn_words *learn_doubt(enum doubt d)
{
    static const struct learn_words words[DOUBTS] = {
        [DOUBT_REFUSED] = {"ticket-denied", "an operator denied one that waited for approval"},
        [DOUBT_EXPIRED] = {"ticket-expired", "one that waited for approval expired"},
        [DOUBT_UNSENT] = {"credential-not-sent", "it was to go with a credential, and was never let through or held "
                                                 "with it; this rule sends it without"}};
    return &words[d];
}
