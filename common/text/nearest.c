#include "common/text/nearest.h"

enum { LETTERS_MAX = 64, LIKE = 2, BEGINNING = 3 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters are wrong, missing, too many, or exchanged with their neighbour, of short names. */
static size_t distance(struct span a, struct span b)
{
    size_t rows[3][LETTERS_MAX + 1];
    if (a.n > LETTERS_MAX || b.n > LETTERS_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i <= a.n; i++) {
        size_t *row = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        for (size_t j = 0; j <= b.n; j++) {
            size_t best = i == 0 ? j : before[j] + 1;
            if (i && j)
                best = smaller(best, before[j - 1] + (a.p[i - 1] != b.p[j - 1]));
            if (j)
                best = smaller(best, row[j - 1] + 1);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                best = smaller(best, earlier[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[a.n % 3][b.n];
}

static bool no_digit(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= '0' && s.p[i] <= '9')
            return false;
    return true;
}

const char *nearest_name(struct span word, const char *const *names)
{
    const char *best = NULL;
    size_t least = smaller((word.n + 1) / 3, LIKE) + 1; /* of a short word, one letter is much */
    for (; *names; names++) {
        struct span name = span_str(*names);
        size_t d = distance(word, name);
        if (word.n >= 2 && span_starts(name, word))
            d = 0;
        else if (name.n >= BEGINNING && span_starts(word, name) &&
                 no_digit(word)) /* hostname: host; no id is meant */
            d = smaller(d, LIKE);
        if (d < least && d < word.n && d < name.n) {
            least = d;
            best = *names;
        }
    }
    return best;
}
