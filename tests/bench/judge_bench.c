/* Work to be counted by callgrind (policy.py), none of it by a clock:
 *   judge_bench judge FILE N   opens the policy and judges one request N times
 *   judge_bench load FILE      compiles it
 *   judge_bench parse FILE     libyaml alone reads it, events only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "policy/load/disk.h"
#include "policy/policy.h"

/* With room for warnings, as policy check has it: without, nobody looks for them. */
static int load(const char *file, struct dynbuf *image)
{
    static struct policy_problem kept[1000];
    struct policy_problems problems = {kept, 0, sizeof(kept) / sizeof(kept[0])};
    struct err e = {""};
    const char *const paths[] = {file};
    struct policy_place from = {.paths = paths, .n = 1, .packs = "."};
    dynbuf_init(image, POLICY_IMAGE_MAX);
    if (policy_load_from_disk(&from, image, &problems, &e) == 0)
        return 0;
    fprintf(stderr, "%s\n", e.text);
    return -1;
}

static int judge(const char *file, unsigned long n)
{
    static const struct http_field fields[] = {{SPAN("Host"), SPAN("api.example")},
                                               {SPAN("User-Agent"), SPAN("agent/1.0")},
                                               {SPAN("Accept"), SPAN("application/json")},
                                               {SPAN("Accept-Encoding"), SPAN("gzip")},
                                               {SPAN("X-Request-Id"), SPAN("0123456789abcdef")}};
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct request r = {.scheme = SPAN("https"),
                        .host = SPAN("api.example"),
                        .port = 443,
                        .method = SPAN("GET"),
                        .path = SPAN("/v1/items/42"),
                        .fields = fields,
                        .nfields = 5};
    struct decision d = {.verdict = VERDICT_DENY};
    struct dynbuf image;
    struct arena a;
    struct policy *p = load(file, &image) == 0 ? policy_open(dynbuf_span(&image), NULL) : NULL;
    for (unsigned long i = 0; p && i < n; i++) {
        arena_init(&a, 1 << 20);
        policy_judge(p, &s, &r, 1800000000000, &a, &d);
        arena_free(&a);
    }
    /* Of a policy whose other rules say no path, one of those may be the one that is named. */
    bool decided = p && (n == 0 || d.rule.id.n > 0);
    policy_close(p);
    dynbuf_free(&image);
    return decided ? 0 : 1;
}

static int parse(const char *file)
{
    FILE *f = fopen(file, "rb");
    yaml_parser_t parser;
    bool end = false, ok = f != NULL && yaml_parser_initialize(&parser);
    if (!ok)
        return 1;
    yaml_parser_set_input_file(&parser, f);
    while (ok && !end) {
        yaml_event_t ev;
        ok = yaml_parser_parse(&parser, &ev);
        end = ok && ev.type == YAML_STREAM_END_EVENT;
        if (ok)
            yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
    (void)fclose(f);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct dynbuf image;
    if (argc == 4 && strcmp(argv[1], "judge") == 0)
        return judge(argv[2], strtoul(argv[3], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "parse") == 0)
        return parse(argv[2]);
    if (argc != 3 || strcmp(argv[1], "load") != 0)
        return 2;
    int rc = load(argv[2], &image);
    dynbuf_free(&image);
    return rc ? 1 : 0;
}
