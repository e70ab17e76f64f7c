/* What of a client's fields leaves otherwise than it came, and that countersign-sandbox(7) says so of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy/canonical.h"
#include "proxy/outbound.h"

#define PAGE  "cli/countersign-sandbox.7"
#define TABLE ".Ss Fields that leave otherwise than they came\n"

static char page[64 * 1024];
static struct span table;

static struct span read_source(const char *file, char *text, size_t size)
{
    const char *top = getenv("srcdir");
    char name[512];
    snprintf(name, sizeof(name), "%s/%s", top ? top : ".", file);
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, size, f);
    fclose(f);
    assert_true(n > 0 && n < size);
    return span_of(text, n);
}

static int read_table(void **state)
{
    struct span all = read_source(PAGE, page, sizeof(page));
    table = span_from(all, span_find(all, SPAN(TABLE)));
    table = span_first(table, span_find(table, SPAN("\n.El\n")));
    return table.n > 0 ? 0 : -1;
}

/* The next name of the table's rows: ".It Li Name , Name , \" and on the next line the rest. False: there is none. */
static bool next_name(struct span *rest, bool *in_row, struct span *name)
{
    while (rest->n) {
        struct span line, more;
        if (!*in_row) {
            span_cut(*rest, '\n', &line, rest);
            if (!span_starts(line, SPAN(".It Li ")))
                continue;
            *rest = span_of(line.p + 7, line.n - 7 + 1 + rest->n);
            *in_row = true;
        }
        span_cut(*rest, '\n', &line, &more);
        struct span word = span_first(line, span_index(line, ' '));
        bool last = word.n == line.n;
        *rest = last ? more : span_from(*rest, word.n + 1);
        *in_row = !last || span_eq(word, SPAN("\\"));
        if (http_is_token(word)) {
            *name = word;
            return true;
        }
    }
    return false;
}

static bool stands_there(struct span name)
{
    struct span rest = table, row;
    bool in_row = false;
    while (next_name(&rest, &in_row, &row))
        if (span_ends(row, SPAN("*"))
                ? name.n >= row.n - 1 && span_ieq(span_first(name, row.n - 1), span_first(row, row.n - 1))
                : span_ieq(name, row))
            return true;
    return false;
}

/* By any of the rules, of a request that is none of those that may. */
static bool leaves_otherwise(struct span name)
{
    const struct outbound beside = {.beside = true, .slot = {SPAN("Authorization")}, .nslots = 1, .secrets = true};
    const struct http_field f = {name, SPAN("x")};
    return !outbound_keeps(&beside, &f) || canonical_never_leaves(name) || canonical_made_anew(name);
}

/* The names are those that the rules themselves are written with: one that is added is looked for in the page. */
static void what_the_code_drops_stands_in_the_page(void **state)
{
    static const char *const rules[] = {"common/http/fields.c", "proxy/outbound.c", "proxy/canonical.c"};
    static char text[64 * 1024];
    unsigned found = 0;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct span literal, before, rest = read_source(rules[i], text, sizeof(text));
        while (span_cut(rest, '"', &before, &rest) && span_cut(rest, '"', &literal, &rest)) {
            char longer[128];
            int n = snprintf(longer, sizeof(longer), "%.*sx", SPAN_FMT(span_first(literal, 100)));
            const struct span names[] = {literal, span_of(longer, (size_t)n)}; /* itself, and as a prefix */
            for (size_t k = 0; k < 2 && http_is_token(literal); k++) {
                if (!leaves_otherwise(names[k]))
                    continue;
                found++;
                if (!stands_there(names[k]))
                    fail_msg("%.*s of %s does not stand in the table of " PAGE, SPAN_FMT(names[k]), rules[i]);
            }
        }
    }
    assert_true(found > 50);
}

static void what_the_page_says_the_code_does(void **state)
{
    struct span rest = table, row;
    bool in_row = false;
    unsigned found = 0;
    for (; next_name(&rest, &in_row, &row); found++) {
        char name[128];
        bool prefix = span_ends(row, SPAN("*"));
        int n = snprintf(name, sizeof(name), "%.*s%s", SPAN_FMT(span_first(row, row.n - prefix)), prefix ? "x" : "");
        if (!leaves_otherwise(span_of(name, (size_t)n)))
            fail_msg("%.*s stands in the table of " PAGE ", and leaves as it came", SPAN_FMT(row));
    }
    assert_true(found > 40);
}

/* A signature has several fields: the client's own of each of them stay here, in any spelling, and others leave. */
static void every_field_of_a_credential_is_its_slot(void **state)
{
    static const struct wire_request r = {.method = SPAN("GET")};
    struct outbound l = outbound_of(&r, true, SPAN("X-Signature"), false);
    outbound_add_slot(&l, SPAN("X-Time"));
    assert_false(outbound_keeps(&l, &(struct http_field){SPAN("x-signature"), SPAN("1")}));
    assert_false(outbound_keeps(&l, &(struct http_field){SPAN("x_time"), SPAN("1")}));
    assert_true(outbound_keeps(&l, &(struct http_field){SPAN("X-Times"), SPAN("1")}));
    outbound_add_slot(&l, SPAN("X-3"));
    outbound_add_slot(&l, SPAN("X-4"));
    assert_true(outbound_keeps(&l, &(struct http_field){SPAN("X-5"), SPAN("1")}));
    outbound_add_slot(&l, SPAN("X-5")); /* more than there can be: rather nothing leaves */
    outbound_add_slot(&l, SPAN("X-6"));
    assert_false(outbound_keeps(&l, &(struct http_field){SPAN("X-7"), SPAN("1")}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_code_drops_stands_in_the_page),
        cmocka_unit_test(what_the_page_says_the_code_does),
        cmocka_unit_test(every_field_of_a_credential_is_its_slot),
    };
    return cmocka_run_group_tests(tests, read_table, NULL);
}
