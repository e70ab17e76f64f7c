/* One value, and what in it is apt to deceive. */
#include "web-approval/reading/parts.h"

#include "common/id.h"
#include "common/text/utf8.h"
#include "common/text/visible.h"

enum { BASE64_MIN = 16, AMOUNT_MAX = 40, DIGITS_KEPT = 15, PLAIN_MAX = 48, ORDER_MAX = 80 };

/* --- letters -------------------------------------------------------------- */

/* Letters that look like those of ASCII, by where they stand. */
static bool imitates(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {{0x0131, 0x0131},   {0x01c0, 0x01c3},   {0x0250, 0x02af},   {0x0370, 0x03ff},   {0x0400, 0x052f},
                  {0x0530, 0x058f},   {0x10a0, 0x10ff},   {0x13a0, 0x13ff},   {0x1400, 0x167f},   {0x16a0, 0x16ff},
                  {0x1c80, 0x1cbf},   {0x1d00, 0x1dbf},   {0x1f00, 0x1fff},   {0x2100, 0x2188},   {0x2c60, 0x2cff},
                  {0x2d00, 0x2d2f},   {0xa4d0, 0xa4ff},   {0xa640, 0xa69f},   {0xa720, 0xa7ff},   {0xab30, 0xabbf},
                  {0xff00, 0xffef},   {0x10280, 0x1034f}, {0x10400, 0x104ff}, {0x118a0, 0x118ff}, {0x16f00, 0x16f9f},
                  {0x1d400, 0x1d7ff}, {0x1f110, 0x1f189}};

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    return false;
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct letters {
    bool hides, turns, mixes;
};

static struct letters letters_of(struct span s)
{
    struct letters l = {false, false, false};
    bool ascii = false, other = false; /* of the word that is being read */
    char escape[VISIBLE_ESCAPE_MAX];
    size_t n;

    for (; s.n; s = span_from(s, n)) {
        enum visible_kind k = visible_char(s, &n, escape);
        uint32_t c = utf8_char(s) ? utf8_code(s, n) : 0;
        if (k == VISIBLE_ESCAPED && c != '\t' && c != '\r') {
            bool turn = c == 0x200e || c == 0x200f || c == 0x61c || (c >= 0x202a && c <= 0x202e) ||
                        (c >= 0x2066 && c <= 0x2069);
            l.turns |= turn;
            l.hides |= !turn;
        } else if (k == VISIBLE_OTHER || (k == VISIBLE_ASCII && is_letter(s.p[0]))) {
            ascii |= k == VISIBLE_ASCII;
            other |= k == VISIBLE_OTHER && imitates(c);
            l.mixes |= ascii && other;
        } else {
            ascii = other = false;
        }
    }
    return l;
}

void text_look(struct reading *r, struct span name, struct span text)
{
    struct letters l = letters_of(text);

    if (l.turns)
        flag_add(r, "Characters that turn the direction of text: it is not read as it looks", name, text);
    if (l.hides)
        flag_add(r, "Characters that do not show, or that show as part of others", name, text);
    if (l.mixes)
        flag_add(r, "A word with letters of several scripts: one may imitate another", name, text);
    url_look(r, name, text);
}

/* --- encodings ------------------------------------------------------------ */

const char *bytes_are(struct span s)
{
    static const struct {
        struct span magic;
        const char *is;
    } known[] = {{SPAN("\x1f\x8b"), "gzip"},
                 {SPAN("\x28\xb5\x2f\xfd"), "zstd"},
                 {SPAN("PK\3\4"), "a zip archive"},
                 {SPAN("\x7f"
                       "ELF"),
                  "a program (ELF)"},
                 {SPAN("MZ"), "a program (Windows)"},
                 {SPAN("#!"), "a script"},
                 {SPAN("\x89PNG\r\n\x1a\n"), "a picture (PNG)"},
                 {SPAN("\xff\xd8\xff"), "a picture (JPEG)"},
                 {SPAN("GIF8"), "a picture (GIF)"},
                 {SPAN("BM"), "a picture (BMP)"},
                 {SPAN("%PDF-"), "a document (PDF)"}};

    if (span_starts(s, SPAN("RIFF")))
        return span_starts(span_from(s, 8), SPAN("WEBP")) ? "a picture (WebP)" : "a sound or a film (RIFF)";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (span_starts(s, known[i].magic))
            return known[i].is;
    return NULL;
}

/* Two letters, as of a BMP, may stand at a beginning by chance. */
bool picture_begins(struct span s)
{
    const char *is = bytes_are(s);

    return is && span_starts(span_str(is), SPAN("a picture")) && !span_starts(s, SPAN("BM"));
}

bool picture_said(struct span type)
{
    return span_ieq(span_first(type, 6), SPAN("image/"));
}

void picture_add(struct reading *r, struct span name, struct span type, struct span bytes)
{
    if (bytes.n == 0)
        flag_block(r, "A picture that is longer than is shown here", name, type);
    else if (r->npictures == READING_PICTURES)
        flag_block(r, "More pictures than are shown of one request", name, type);
    else
        r->picture[r->npictures++] = (struct picture){name, type, bytes, false};
}

/* One too many is not listed, and stays what it is said to be: gzip. */
static void package_add(struct reading *r, struct span name, struct span bytes)
{
    if (r->npictures < READING_PICTURES)
        r->picture[r->npictures++] = (struct picture){name, SPAN_NONE, bytes, true};
}

/* The bytes of base64 in either alphabet, with or without its end and in lines or not; p NULL: it is none. */
static bool is_data(struct span s)
{
    return span_ieq(span_first(s, 5), SPAN("data:"));
}

static struct span base64_open(struct arena *a, struct span s)
{
    size_t comma = span_index(s, ','), n = 0, got = 0;

    struct span said = span_first(s, comma); /* both words in any case (RFC 2397, RFC 3986, 3.1) */
    if (is_data(s) && said.n >= 7 && span_ieq(span_from(said, said.n - 7), SPAN(";base64")))
        s = span_from(s, comma + 1);
    uint8_t *text = s.n >= BASE64_MIN ? arena_alloc(a, s.n + 4) : NULL;
    uint8_t *out = text ? arena_alloc(a, s.n + 4) : NULL;
    if (!out)
        return SPAN_NONE;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '\r' && s.p[i] != '\n')
            text[n++] = s.p[i] == '-' ? '+' : s.p[i] == '_' ? '/' : s.p[i];
    while (n % 4 && n < s.n + 3)
        text[n++] = '=';
    return base64_decode(span_of(text, n), out, &got) == 0 ? span_of(out, got) : SPAN_NONE;
}

/* What base64 hides: a text, or bytes that are known by how they begin. Other bytes it may just be by chance. */
static struct span encoded(struct reading *r, struct span name, struct span value)
{
    struct span bytes = base64_open(r->arena, value), type = SPAN_NONE;

    if (bytes.n == 0)
        return SPAN_NONE;
    if (is_data(value))
        type = span_first(span_from(value, 5), span_index(span_from(value, 5), ';'));
    if (picture_begins(bytes) || (picture_said(type) && !visible_is_text(bytes)))
        picture_add(r, name, type, bytes);
    if (visible_is_text(bytes)) {
        flag_add(r, "Base64 inside a value. Opened, it is", name, bytes);
        text_look(r, name, bytes);
        if (base64_open(r->arena, bytes).n)
            flag_add(r, "Base64 inside base64: only the first was opened", name, bytes);
        return bytes;
    }
    const char *is = bytes.n > BASE64_MIN ? bytes_are(bytes) : NULL;
    if (is)
        flag_add(r, "Base64 inside a value. Opened, it is bytes of", name, span_str(is));
    if (span_starts(bytes, SPAN("\x1f\x8b")))
        package_add(r, name, bytes);
    return SPAN_NONE;
}

/* --- numbers and units ---------------------------------------------------- */

static struct span last_name(struct span name)
{
    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '/')
            return span_from(name, i);
    return name;
}

static bool is_capital(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

/* Does a word begin at i, as in "a_word" and "aWord"? */
static bool word_begins(struct span s, size_t i)
{
    return i == 0 || !is_letter(s.p[i - 1]) || (is_capital(s.p[i]) && !is_capital(s.p[i - 1]));
}

/* One of these words, or its plural: "amount" in "total_amounts", not "sum" in "summary". */
static bool name_has(struct span name, const char *const *words, size_t n)
{
    name = last_name(name);
    for (size_t w = 0; w < n; w++) {
        struct span word = span_str(words[w]);
        for (size_t i = 0; i + word.n <= name.n; i++) {
            uint8_t next = i + word.n < name.n ? name.p[i + word.n] : 0;
            if (span_ieq(span_of(name.p + i, word.n), word) && word_begins(name, i) &&
                (!is_letter(next) || is_capital(next) || next == 's'))
                return true;
        }
    }
    return false;
}

static bool all_digits(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

/* "5", "-5", "5.25": what everybody reads alike. */
static bool amount_is_plain(struct span s)
{
    struct span whole, cents;

    if (s.n > 1 && s.p[0] == '-')
        s = span_from(s, 1);
    bool point = span_cut(s, '.', &whole, &cents);
    return all_digits(whole) && (whole.n == 1 || whole.p[0] != '0') &&
           (!point || (all_digits(cents) && cents.n <= 2));
}

/* "1.5e3" as "1500"; empty when it is longer than anybody counts. */
static struct span number_plain(struct arena *a, struct span s)
{
    struct span mantissa, exponent, whole, part;
    size_t e = span_index(s, 'e') < s.n ? span_index(s, 'e') : span_index(s, 'E');
    uint64_t by = 0;
    struct dynbuf b;

    mantissa = span_first(s, e);
    exponent = span_from(s, e + 1);
    bool minus = mantissa.n && mantissa.p[0] == '-', down = exponent.n && exponent.p[0] == '-';
    mantissa = span_from(mantissa, minus);
    if (exponent.n && (exponent.p[0] == '-' || exponent.p[0] == '+'))
        exponent = span_from(exponent, 1);
    while (exponent.n > 1 && exponent.p[0] == '0')
        exponent = span_from(exponent, 1);
    (void)span_cut(mantissa, '.', &whole, &part);
    if (span_u64(exponent, PLAIN_MAX, &by) != 0 || whole.n + part.n + by > PLAIN_MAX)
        return SPAN_NONE;
    dynbuf_init(&b, 4 * PLAIN_MAX);
    size_t digits = whole.n + part.n, point = down ? 0 : whole.n + (size_t)by, zeros = 0;
    if (down && whole.n > by)
        point = whole.n - (size_t)by;
    else if (down)
        zeros = (size_t)by - whole.n;
    (void)dynbuf_add(&b, minus ? SPAN("-") : SPAN(""));
    if (point == 0)
        (void)dynbuf_add(&b, SPAN("0."));
    for (size_t i = 0; i < zeros; i++)
        (void)dynbuf_add_byte(&b, '0');
    for (size_t i = 0; i < digits || i < point; i++) {
        if (i == point && i > 0)
            (void)dynbuf_add_byte(&b, '.');
        (void)dynbuf_add_byte(&b, i < whole.n ? whole.p[i] : i < digits ? part.p[i - whole.n] : '0');
    }
    struct span out = arena_copy(a, dynbuf_span(&b));
    dynbuf_free(&b);
    return out;
}

static void number_look(struct reading *r, struct span name, struct span value)
{
    size_t digits = 0;

    if (span_index(value, 'e') < value.n || span_index(value, 'E') < value.n) {
        struct span plain = number_plain(r->arena, value);
        flag_add(r, "A number with an exponent. Written out, it is", name,
                 plain.n ? plain : SPAN("longer than anybody counts"));
        return;
    }
    for (size_t i = 0; i < value.n; i++)
        digits += value.p[i] >= '0' && value.p[i] <= '9';
    if (digits > DIGITS_KEPT)
        flag_add(r, "A number with more digits than many programs keep: they may read another", name, value);
}

static bool is_among(struct span s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_ieq(s, span_str(list[i])))
            return true;
    return false;
}

static void money_look(struct reading *r, struct span name, struct span value)
{
    static const char *const amounts[] = {"amount", "price", "total", "sum", "cost", "fee", "quantity", "balance"};
    static const char *const currencies[] = {"currency", "ccy"};
    static const char *const units[] = {"unit", "denomination", "multiplier", "scale"};
    static const char *const thousandths[] = {"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"};
    static const char *const wholes[] = {"JPY", "KRW", "VND", "CLP", "ISK", "UGX", "PYG", "XAF", "XOF", "XPF"};
    static const char *const odd[] = {"XAU", "XAG", "XPT", "XDR", "CLF"};
    static const char *const many[] = {"k",        "thousand", "thousands", "m",    "mio",   "million",
                                       "millions", "bn",       "billion",   "cent", "cents", "wei",
                                       "gwei",     "sat",      "satoshi",   "minor"};
    bool unusual = false;

    if (value.n == 0 || value.n > AMOUNT_MAX)
        return;
    if (name_has(name, amounts, 8) && (span_index(SPAN("+-.0123456789"), value.p[0]) < 13 || value.p[0] >= 0x80) &&
        !amount_is_plain(value))
        flag_add(r, "An amount in an unusual spelling: programs differ in what they read", name, value);
    if (name_has(name, currencies, 2)) {
        unusual = value.n != 3 || is_among(value, odd, sizeof odd / sizeof odd[0]);
        if (is_among(value, thousandths, sizeof thousandths / sizeof thousandths[0]))
            flag_add(r, "A currency of thousandths: a server that counts the smallest unit takes 1500 for 1.500",
                     name, value);
        if (is_among(value, wholes, sizeof wholes / sizeof wholes[0]))
            flag_add(r, "A currency without smaller units: 1500 is 1500, and not 15.00", name, value);
    }
    for (size_t i = 0; i < sizeof many / sizeof many[0] && !unusual && name_has(name, units, 4); i++)
        unusual = span_ieq(value, span_str(many[i]));
    if (unusual)
        flag_add(r, "An unusual unit: the amount counts otherwise than in hundredths", name, value);
}

/* --- orders --------------------------------------------------------------- */

bool text_deletes(struct span s)
{
    static const char *const orders[] = {"delete", "destroy", "remove", "drop", "purge", "erase", "truncate", "wipe"};

    for (size_t w = 0; w < sizeof orders / sizeof orders[0] && s.n <= ORDER_MAX; w++) {
        struct span order = span_str(orders[w]);
        for (size_t i = 0; i + order.n <= s.n; i++) {
            uint8_t next = i + order.n < s.n ? s.p[i + order.n] : 0;
            if (span_ieq(span_of(s.p + i, order.n), order) && word_begins(s, i) &&
                (!is_letter(next) || is_capital(next)))
                return true;
        }
    }
    return false;
}

static void order_look(struct reading *r, struct span name, struct span value)
{
    static const char *const asks[] = {"action",  "operation", "op",   "method", "_method",
                                       "command", "cmd",       "verb", "type",   "event"};
    struct span last = last_name(name);

    if (span_eq(r->asked->effect, SPAN("delete")) || span_ieq(r->asked->method, SPAN("delete")))
        return;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        if (span_ieq(last, span_str(asks[i])) && text_deletes(value)) {
            flag_add(r, "It asks to delete, though its method does not say so", name, value);
            return;
        }
}

/* How many fields a text of GraphQL has at its top, in all its operations. */
static size_t graphql_fields(struct span s)
{
    size_t fields = 0, braces = 0, parens = 0;

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '"') {
            for (i++; i < s.n && s.p[i] != '"'; i++)
                i += s.p[i] == '\\';
        } else if (c == '{' || c == '}') {
            braces += c == '{' ? 1 : braces ? (size_t)-1 : 0;
        } else if (c == '(' || c == ')') {
            parens += c == '(' ? 1 : parens ? (size_t)-1 : 0;
        } else if (is_letter(c) || c == '_') {
            bool at_top = braces == 1 && parens == 0 && (i == 0 || span_index(SPAN("@$."), s.p[i - 1]) == 3);
            while (i + 1 < s.n &&
                   (is_letter(s.p[i + 1]) || s.p[i + 1] == '_' || (s.p[i + 1] >= '0' && s.p[i + 1] <= '9')))
                i++;
            size_t next = i + 1;
            while (next < s.n && s.p[next] == ' ')
                next++;
            fields += at_top && !(next < s.n && s.p[next] == ':'); /* an alias is no field */
        }
    }
    return fields;
}

static void graphql_look(struct reading *r, struct span name, struct span value)
{
    static const char *const begins[] = {"mutation", "query", "subscription"};
    struct span s = value;

    while (s.n && (s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\t' || s.p[0] == '\r'))
        s = span_from(s, 1);
    for (size_t i = 0; i < 3; i++) {
        struct span word = span_str(begins[i]), rest = span_from(s, word.n);
        if (!span_starts(s, word) || rest.n == 0 || span_index(SPAN(" ({\n\t\r"), rest.p[0]) == 6 ||
            span_index(rest, '{') == rest.n)
            continue;
        flag_add(r, "A text that reads as GraphQL: a server may carry it out", name, value);
        if (graphql_fields(s) > 1)
            flag_add(r, "Several operations in one request", name, arena_printf(r->arena, "%zu", graphql_fields(s)));
        return;
    }
}

/* --- all of it ------------------------------------------------------------ */

static struct span look(struct reading *r, struct span name, struct span value, enum value_is is)
{
    if (is == VALUE_NUMBER) {
        number_look(r, name, value);
        return SPAN_NONE;
    }
    if (is == VALUE_WORD)
        return SPAN_NONE;
    text_look(r, name, value);
    money_look(r, name, value);
    order_look(r, name, value);
    graphql_look(r, name, value);
    return encoded(r, name, value);
}

void value_look(struct reading *r, struct span name, struct span value, enum value_is is)
{
    (void)look(r, name, value, is);
}

uint32_t name_hash(struct span s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * 16777619u;
    return h;
}

void value_add(struct reading *r, struct span name, struct span value, enum value_is is)
{
    struct span opened = look(r, name, value, is);
    uint32_t hash = name_hash(name);

    r->values++;
    for (size_t i = 0; r->together && i < r->nsaid; i++)
        if (r->said[i].hash == hash && span_eq(r->said[i].name, name)) {
            r->said[i].times++;
            return;
        }
    if (r->nsaid == READING_ROWS)
        return;
    struct said *more = arena_more(r->arena, r->said, r->nsaid, &r->max_said, sizeof *more);
    if (!more)
        return;
    r->said = more;
    r->said[r->nsaid++] = (struct said){name, value, opened, 1, hash};
}
