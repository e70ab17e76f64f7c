#include "policy/spelling/letters.h"

/* From `first` on, one character each; '~': none. Made of Unicode's data: decompositions without their marks, case
 * folded, and the letters with a stroke, dashes and quotes that code pages fit to ASCII. */
static const struct {
    uint32_t first;
    struct span is;
} runs[] = {
    {0xa0, SPAN(" ~~~~~~~ ~a~~~~ ~~23 ~~~ 1o~~~~~aaaaaa~ceeeeiiiidnooooo~ouuuuy~~aaaaaa~ceeeeiiiidnooooo~ouuuuy~y"
                "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii~~jjkk~llllll~~llnnnnnn~~~oooooo~~rrrrrrssssss"
                "ssttttttuuuuuuuuuuuuwwyyyzzzzzzs")},
    {0x1cd, SPAN("aaiioouuuuuuuuuu~aaaa~~~~ggkkoooo~~j~~~gg~~nnaa~~~~aaaaeeeeiiiioooorrrruuuusstt~~hh~~~~~~aaeeoo"
                 "ooooooyy")},
    {0x1d2c, SPAN("a~b~de~ghijklmn~o~prtuwa~~~bde~~~g~km~o~~~ptu~~v~~~~~~iruv")},
    {0x1e00, SPAN("aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprrrrrr"
                  "rrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy~s~~~~aaaaaaaaaaaaaaaaaaaaaaaaeeee"
                  "eeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy")},
    {0x2000, SPAN("           ~~~~~------~ ''~~~~~~~~~~...~  ~~~~~ ~~~~~~~~~~~~~~ ~~~~~/")},
    {0x2070, SPAN("0i~~456789+~=()n0123456789+~=()~aeox~hklmnpst")},
    {0x2100, SPAN("~~c~~~~~~~ghhhh~iill~n~~~pqrrr~~~~~~z~~~z~kabc~eef~mo~~~~i~~~~~~~~~~~ddeij~~~~~~~~~~~~~~~~~~~~"
                  "~~i~~~v~~~~x~~lcdmi~~~v~~~~x~~lcdm")},
    {0xfe10, SPAN(",~~:;!?~~~~~~~~~~~~~~~~~~~~~~~~~~~~__(){}~~~~~~~~~~~~~~[]    ___,~.~;:?!~(){}~~#&*+-<>=~~$%@")},
};

/* From `first` to `last`, over and over: these many characters of ASCII from this one on. */
static const struct {
    uint32_t first, last;
    uint8_t from, many;
} rows[] = {
    {0x2460, 0x2468, '1', 9},    {0x24b6, 0x24e9, 'a', 26},   {0x3000, 0x3000, ' ', 1},
    {0xff01, 0xff5e, '!', 94},   {0x1d400, 0x1d6a3, 'a', 26}, {0x1d7ce, 0x1d7ff, '0', 10},
    {0x1f130, 0x1f149, 'a', 26}, {0x1fbf0, 0x1fbf9, '0', 10},
};

/* The zeros of other scripts: nine digits follow each. */
static const uint32_t zeros[] = {
    0x660,   0x6f0,   0x7c0,   0x966,   0x9e6,   0xa66,   0xae6,   0xb66,   0xbe6,   0xc66,   0xce6,   0xd66,
    0xde6,   0xe50,   0xed0,   0xf20,   0x1040,  0x1090,  0x17e0,  0x1810,  0x1946,  0x19d0,  0x1a80,  0x1a90,
    0x1b50,  0x1bb0,  0x1c40,  0x1c50,  0xa620,  0xa8d0,  0xa900,  0xa9d0,  0xa9f0,  0xaa50,  0xabf0,  0x104a0,
    0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0,
    0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1e140, 0x1e2f0, 0x1e950,
};

/* Accents by themselves and what is not to be seen: nothing to who ignores them. */
static const uint32_t nothing[][2] = {
    {0x80, 0x9f},     {0xad, 0xad},     {0x300, 0x36f},   {0x61c, 0x61c},   {0x180b, 0x180f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff},
};

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
enum { NOT_ASCII = 0x80 };

/* The bytes of the character that begins here, also where it takes more than it needs; 0: none does. */
static size_t char_at(struct span s, size_t at, uint32_t *is)
{
    uint8_t c = s.p[at];
    size_t more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf8 ? 3 : 0;
    if (more == 0 || s.n - at <= more)
        return 0;
    *is = c & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((s.p[at + i] & 0xc0) != 0x80)
            return 0;
        *is = *is << 6 | (s.p[at + i] & 0x3fu);
    }
    return more + 1;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* NOT_ASCII: it is none. */
static uint8_t of_char(uint32_t c)
{
    if (c < 0x80)
        return lower((uint8_t)c);
    if ((c > 0x3000 && c < 0xa620) || (c >= 0xac00 && c < 0xfe00))
        return NOT_ASCII; /* ideographs and syllables: most texts of such characters */
    for (size_t i = 0; i < COUNT(runs); i++)
        if (c >= runs[i].first && c - runs[i].first < runs[i].is.n && runs[i].is.p[c - runs[i].first] != '~')
            return runs[i].is.p[c - runs[i].first];
    for (size_t i = 0; i < COUNT(rows); i++)
        if (c >= rows[i].first && c <= rows[i].last)
            return lower((uint8_t)(rows[i].from + (c - rows[i].first) % rows[i].many));
    for (size_t i = 0; i < COUNT(nothing); i++)
        if (c >= nothing[i][0] && c <= nothing[i][1])
            return 0;
    for (size_t i = 0; i < COUNT(zeros); i++)
        if (c >= zeros[i] && c < zeros[i] + 10)
            return (uint8_t)('0' + (c - zeros[i]));
    return NOT_ASCII;
}

uint8_t letter_next(struct span s, size_t *at)
{
    uint32_t is;
    uint8_t c = s.p[*at];
    size_t used = c < 0x80 ? 0 : char_at(s, *at, &is);
    uint8_t letter = used ? of_char(is) : lower(c);
    if (used && letter == NOT_ASCII)
        return s.p[(*at)++];
    *at += used ? used : 1;
    return letter;
}

/* The next one that is something; 0: no more. */
static uint8_t some_letter(struct span s, size_t *at)
{
    uint8_t c = 0;
    while (*at < s.n && c == 0)
        c = letter_next(s, at);
    return c;
}

bool letters_same(struct span a, struct span b)
{
    size_t i = 0, k = 0;
    for (;;) {
        uint8_t c = some_letter(a, &i);
        if (c != some_letter(b, &k))
            return false;
        if (c == 0)
            return true;
    }
}
