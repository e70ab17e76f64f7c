/* A request that publishes, and a registry's list of versions (the first byte says which): nothing outside of what
 * came is read or pointed at, and nobody is asked but the host that the request went to. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "sandbox-shim/inside/diff/shim_package.h"

#define BASE "https://r.test:443/@s%2fp"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void inside(struct value v, const char *p, size_t n)
{
    MUST_HOLD(v.n == 0 || (v.p >= p && v.n <= n && (size_t)(v.p - p) <= n - v.n));
}

static void request(const char *p, size_t n)
{
    struct publish publish;
    const char *error = publish_read(p, n, &publish);

    inside(publish.integrity, p, n);
    inside(publish.shasum, p, n);
    MUST_HOLD(error ||
              (publish.tgz && publish.ntgz > 0 && publish.ntgz < n && publish.name[0] && publish.version[0]));
    reached |= error == NULL;
    free(publish.tgz);
}

static void list(const char *p, size_t n)
{
    struct publish publish = {.name = "@s/p", .version = "1.1.0", .tag = "latest"};
    char where[PACKAGE_URL_MAX], url[PACKAGE_URL_MAX];
    struct last last;
    const char *error = last_find(p, n, &publish, &last);

    inside(last.tarball, p, n);
    inside(last.integrity, p, n);
    inside(last.shasum, p, n);
    if (error || !last.is)
        return;
    reached = true;
    if (json_text(last.tarball, where, sizeof(where)) >= 0 && package_url(BASE, publish.name, where, url))
        MUST_HOLD(strncmp(url, "https://r.test:443/", 19) == 0 && !strstr(url + 18, "/..") &&
                  !strpbrk(url, " ?#\"\\\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = n > 1 ? fuzz_copy(span_of(data + 1, n - 1)) : NULL;

    if (copy && data[0] == 'r')
        request((const char *)copy, n - 1);
    else if (copy)
        list((const char *)copy, n - 1);
    free(copy);
    return 0;
}
