/* What a program with hosts says to its proxy. First byte: how many bytes come at once; then what it says. Whom it
 * may have does not depend on how the bytes came, and is the one that it named, behind CONNECT and in front of the
 * end of its head; what it may not is refused with words. */
#include "proxy/fetcher/job/relay.h"
#include "tests/fuzz/fuzz.h"

static const struct relay_place places[] = {{.host = "api.example.com", .nhost = 15, .port = 443},
                                            {.host = "api.example.com", .nhost = 15, .port = 8443},
                                            {.host = "192.0.2.1", .nhost = 9, .port = 443},
                                            {.host = "[2001:db8::1]", .nhost = 13, .port = 443}};
enum { PLACES = sizeof(places) / sizeof(places[0]) };
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static bool read_in_pieces(struct span all, size_t step, struct relay_asked *out)
{
    size_t seen = 0;
    for (size_t n = step < all.n ? step : all.n;; n = n + step < all.n ? n + step : all.n) {
        uint8_t *copy = fuzz_copy(span_first(all, n));
        bool over = relay_read(span_of(copy, n), &seen, places, PLACES, out);
        free(copy);
        if (over || n == all.n)
            return over;
    }
}

/* The text of its target, which may be in capitals, end in a dot, or be an address of many spellings. */
static void is_named(struct span said, const struct relay_place *to)
{
    struct span host = span_from(said, 8);
    uint64_t port;
    host = span_first(host, span_index(host, ' '));
    size_t at = host.n;
    while (at > 0 && host.p[at - 1] != ':')
        at--;
    MUST_HOLD(span_starts(said, SPAN("CONNECT ")) && at > 1);
    MUST_HOLD(span_u64(span_from(host, at), UINT16_MAX, &port) == 0 && port == to->port);
    host = span_first(host, at - 1);
    if (host.p[host.n - 1] == '.')
        host.n--;
    MUST_HOLD(to->host[0] == '[' ? host.p[0] == '[' : span_ieq(host, span_of(to->host, to->nhost)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span said = span_from(span_of(data, n), 1);
    struct relay_asked whole, cut;
    if (n < 2)
        return 0;
    bool over = read_in_pieces(said, said.n, &whole);
    MUST_HOLD(read_in_pieces(said, 1 + data[0], &cut) == over);
    if (!over)
        return 0;
    MUST_HOLD(cut.to == whole.to && cut.status == whole.status);
    if (whole.to == NULL) {
        MUST_HOLD(whole.status >= 400 && whole.status < 600 && whole.why[0] != '\0');
        return 0;
    }
    reached = true;
    MUST_HOLD(whole.to >= places && whole.to < places + PLACES);
    MUST_HOLD(cut.used == whole.used && whole.used <= said.n);
    MUST_HOLD(span_ends(span_first(said, whole.used), SPAN("\n")));
    is_named(said, whole.to);
    return 0;
}
