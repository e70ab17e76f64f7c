/* What we read of a form with files, for tests/differential/multipart.py.
 *
 * in:  a line for each: the Content-Type and the body, in hex, a blank between them
 * out: "field NAME CONTENT;" or "file NAME FILENAME TYPE CONTENT;" for each part, in hex; or "refused" */
#include <stdio.h>
#include <stdlib.h>

#include "common/id.h"
#include "policy/body/multipart.h"
#include "policy/body/parsers.h"

enum { LINE_MAX_BYTES = 1 << 18 };

static void put(struct span s)
{
    printf(" ");
    for (size_t i = 0; i < s.n; i++)
        printf("%02x", s.p[i]);
}

static void put_form(struct span type, struct span body)
{
    struct body_view v = {.content_type = type};
    struct arena a;
    arena_init(&a, 64 << 20);
    enum ambiguity_cause why = body_multipart_look(&v, body, &a);
    if (why != AMBIGUITY_NONE)
        printf("refused");
    for (size_t i = 0; why == AMBIGUITY_NONE && i < v.multipart->n; i++) {
        const struct multipart_part *part = &v.multipart->part[i];
        printf("%s", part->is == MULTIPART_FILE ? "file" : "field");
        put(v.multipart->names.v[i].name);
        if (part->is == MULTIPART_FILE) {
            put(part->file);
            put(part->type);
        }
        put(part->content);
        printf(";");
    }
    printf("\n");
    arena_free(&a);
}

int main(void)
{
    static char line[LINE_MAX_BYTES];
    static uint8_t type[LINE_MAX_BYTES / 2], body[LINE_MAX_BYTES / 2];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct span one, other;
        (void)span_cut(span_of(line, strcspn(line, "\n")), ' ', &one, &other);
        if (hex_parse(one, type, one.n / 2) != 0 || hex_parse(other, body, other.n / 2) != 0)
            return 2;
        put_form(span_of(type, one.n / 2), span_of(body, other.n / 2));
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
