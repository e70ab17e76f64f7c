/* The search of answers for secrets, as work to be counted by callgrind and timed (tests/bench/scrub.py):
 *   scrub_bench KIND SECRETS SHORTEST MIB   so many secrets in all their forms, so many MiB in pieces of 64 KiB
 * KIND: json, noise, near (texts that begin as escaped secrets do) or escapes (nothing else). Prints the bytes
 * searched for each second of CPU time, and how many were found (of noise and json none). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proxy/carrier/scrub/scrub.h"

enum { PIECE = 64 * 1024, TEXT = 16 * PIECE };

static unsigned rnd(void)
{
    static unsigned seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

/* A token, a key with signs of base64 in it, a password with what encoders escape: in turn. */
static struct span secret_of(size_t i, size_t shortest)
{
    static const char signs[][80] = {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                                     "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789\"&<>'/+= %\\"};
    static const size_t sizes[] = {40, 40, 24};
    size_t kind = i % 3, n = i == 0 ? shortest : sizes[kind];
    char *p = malloc(n);
    for (size_t k = 0; p != NULL && k < n; k++)
        p[k] = signs[kind][rnd() % strlen(signs[kind])];
    return span_of(p, p ? n : 0);
}

static void fill(struct dynbuf *b, const char *kind)
{
    while (b->n < TEXT && dynbuf_ok(b))
        if (kind[0] == 'j')
            (void)dynbuf_addf(
                b, "{\"id\": %u, \"login\": \"user-%u\", \"url\": \"https://api.example/u/%u\", \"admin\": false},\n",
                rnd(), rnd(), rnd());
        else if (kind[0] == 'e')
            (void)dynbuf_addf(b, "\\u00%02x", 0x41 + rnd() % 26);
        else if (kind[0] == 'n')
            (void)dynbuf_add_byte(b, (uint8_t)rnd());
        else
            (void)dynbuf_addf(b, "\\u00%02x&#x%02x;%%%02x%02x&amp;", rnd() % 256, rnd() % 256, rnd() % 256,
                              rnd() % 256);
}

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct scrub_secret secret[SCRUB_SECRETS_MAX];
    struct scrub_stream t;
    struct dynbuf text, out;
    struct err e = {""};
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, mib = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    if (argc != 5 || n > SCRUB_SECRETS_MAX)
        return 2;
    for (size_t i = 0; i < n; i++)
        secret[i] = (struct scrub_secret){secret_of(i, strtoul(argv[3], NULL, 10)), false};
    double made = cpu();
    struct scrub *set = scrub_new(secret, n, &e);
    made = cpu() - made;
    if (set == NULL) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    dynbuf_init(&text, TEXT + 4096);
    dynbuf_init(&out, 4 * 1024 * 1024);
    fill(&text, argv[1]);
    scrub_begin(&t, set);
    double began = cpu();
    for (size_t i = 0; i < mib * (1024 * 1024 / PIECE); i++) {
        if (scrub_feed(&t, span_of(text.p + i % (TEXT / PIECE) * PIECE, PIECE), false, &out) != 0)
            return 1;
        dynbuf_reset(&out);
    }
    double took = cpu() - began;
    printf("%.0f bytes/s, found %llu, made in %.3f s\n", (double)(mib << 20) / took, (unsigned long long)t.found,
           made);
    scrub_end(&t);
    scrub_unref(&set);
    dynbuf_free(&text);
    dynbuf_free(&out);
    return 0;
}
