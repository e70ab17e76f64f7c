#include "proxy/duty/duty.h"

const char *duty_words(unsigned duties)
{
    static const char *const words[] = {"nothing", "stream", "turn", "stream,turn"};
    return words[duties & DUTY_ALL];
}

const char *duty_alone(unsigned duties)
{
    return duties == DUTY_STREAM || duties == DUTY_TURN ? duty_words(duties) : "";
}

/* What a turn does between two of its rows: whoever runs it has it in memory, and nobody else could take it up. */
static bool is_of_a_turn(struct span word)
{
    return span_eq(word, SPAN("model")) || span_eq(word, SPAN("tool")) || span_starts(word, SPAN("tool:"));
}

int duty_add(struct span word, unsigned *duties, struct err *e)
{
    struct span shown = span_first(word, 64);
    unsigned is = span_eq(word, SPAN("stream")) ? DUTY_STREAM : span_eq(word, SPAN("turn")) ? DUTY_TURN : 0;
    if (is_of_a_turn(word))
        return err_set(e,
                       "only: %.*s is no process of its own: who runs a turn asks its models and runs its calls; say "
                       "turn",
                       SPAN_FMT(shown));
    if (is == 0)
        return err_set(e, "only: \"%.*s\" is neither stream nor turn", SPAN_FMT(shown));
    if ((*duties & is) != 0)
        return err_set(e, "only: %.*s stands there twice", SPAN_FMT(shown));
    *duties |= is;
    return 0;
}

int duty_read(struct span list, unsigned *duties, struct err *e)
{
    struct span word;
    bool more = true;
    *duties = 0;
    while (more) {
        more = span_cut(list, ',', &word, &list);
        if (duty_add(word, duties, e) != 0)
            return -1;
    }
    return 0;
}
