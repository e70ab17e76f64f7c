/* A seed for fuzz_policy_image: policy_seed POLICY.yaml PACKS METHOD HOST PATH QUERY BODY > corpus/policy_image/NAME.
 * The request, a length byte before each part, and the compiled policy. */
#include <stdio.h>
#include <string.h>

#include "policy/load/disk.h"

static int put_part(const char *text)
{
    size_t n = strlen(text);
    return n > 255 || putchar((int)n) == EOF || fwrite(text, 1, n, stdout) != n ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct dynbuf image;
    struct err e = {""};
    int rc = 1;
    if (argc != 8)
        return 2;
    const char *const paths[] = {argv[1]};
    struct policy_place from = {.paths = paths, .n = 1, .packs = argv[2]};
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    if (policy_load_from_disk(&from, &image, NULL, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
    } else {
        rc = 0;
        for (int i = 3; i < argc; i++)
            rc |= put_part(argv[i]);
        rc |= fwrite(image.p, 1, image.n, stdout) != image.n || fflush(stdout) != 0;
    }
    dynbuf_free(&image);
    return rc ? 1 : 0;
}
