/* D3, D45: the table of forms, what proxy/carrier/SCRUB.md and THREATS.md say of it, and that each row finds what no
 * other does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/dynbuf.h"
#include "proxy/carrier/scrub/forms.h"

#define ODD "p/s+s w&rd=%x\"\\<7>~~?>~~?>\xc3\xa9"

static struct dynbuf text_of(const char *name)
{
    char path[300];
    const char *dir = getenv("srcdir");
    struct dynbuf b;
    snprintf(path, sizeof(path), "%s/%s", dir ? dir : ".", name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("%s", path);
    dynbuf_init(&b, 64 * 1024);
    uint8_t *p = dynbuf_room(&b, b.max);
    assert_non_null(p);
    dynbuf_grew(&b, fread(p, 1, b.max, f));
    fclose(f);
    return b;
}

/* The rows of the first table of proxy/carrier/SCRUB.md are the rows of ours, word for word and in order. */
static void scrub_md_says_what_the_table_has(void **state)
{
    struct dynbuf md = text_of("proxy/carrier/SCRUB.md"), want;
    const struct scrub_form_kind *k;
    dynbuf_init(&want, 64 * 1024);
    dynbuf_add(&want, SPAN("| form | which of it |\n|---|---|\n"));
    for (size_t i = 0; (k = scrub_form_kind(i)) != NULL; i++)
        assert_int_equal(dynbuf_addf(&want, "| %s | %s |\n", k->name, k->says), 0);
    dynbuf_add(&want, SPAN("\n"));
    assert_true(dynbuf_ok(&want));
    if (span_find(dynbuf_span(&md), dynbuf_span(&want)) == md.n)
        fail_msg("SCRUB.md should have:\n%.*s", SPAN_FMT(dynbuf_span(&want)));
    dynbuf_free(&md);
    dynbuf_free(&want);
}

static void threats_md_names_each_row(void **state)
{
    struct dynbuf md = text_of("THREATS.md"), list;
    const struct scrub_form_kind *k;
    dynbuf_init(&list, 4096);
    for (size_t i = 0; (k = scrub_form_kind(i)) != NULL; i++)
        assert_int_equal(dynbuf_addf(&list, "%s%s",
                                     i == 0                           ? ""
                                     : scrub_form_kind(i + 1) == NULL ? " and "
                                                                      : ", ",
                                     k->name),
                         0);
    for (size_t i = 0; i < md.n; i++) /* lines may break anywhere in it */
        if (md.p[i] == '\n' && span_starts(span_from(dynbuf_span(&md), i), SPAN("\n  ")))
            md.p[i] = ' ', memmove(md.p + i + 1, md.p + i + 3, md.n - i - 3), md.n -= 2;
    if (span_find(dynbuf_span(&md), dynbuf_span(&list)) == md.n)
        fail_msg("THREATS.md should name: %.*s", SPAN_FMT(dynbuf_span(&list)));
    dynbuf_free(&md);
    dynbuf_free(&list);
}

struct seen {
    struct dynbuf all; /* each form, with a line feed before and behind, which none has in it */
    size_t fresh;
};

static int note(void *arg, struct span form)
{
    struct seen *s = arg;
    struct dynbuf line;
    dynbuf_init(&line, 4096);
    dynbuf_add_byte(&line, '\n');
    dynbuf_add(&line, form);
    dynbuf_add_byte(&line, '\n');
    assert_true(dynbuf_ok(&line));
    if (span_find(dynbuf_span(&s->all), dynbuf_span(&line)) == s->all.n) {
        s->fresh++;
        assert_int_equal(dynbuf_add(&s->all, dynbuf_span(&line)), 0);
    }
    dynbuf_free(&line);
    return 0;
}

/* A row that finds nothing of its own says too much in the documents. */
static void each_row_has_forms_of_its_own(void **state)
{
    const struct scrub_form_kind *k;
    for (size_t i = 0; (k = scrub_form_kind(i)) != NULL; i++) {
        struct seen others = {.fresh = 0};
        dynbuf_init(&others.all, 64 * 1024);
        for (size_t other = 0; scrub_form_kind(other) != NULL; other++)
            if (other != i)
                assert_int_equal(scrub_forms_of(other, SPAN(ODD), note, &others), 0);
        others.fresh = 0;
        assert_int_equal(scrub_forms_of(i, SPAN(ODD), note, &others), 0);
        if (others.fresh == 0)
            fail_msg("%s has no form that the others have not", k->name);
        dynbuf_free(&others.all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scrub_md_says_what_the_table_has),
        cmocka_unit_test(threats_md_names_each_row),
        cmocka_unit_test(each_row_has_forms_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
