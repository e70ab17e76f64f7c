/* Prefer, as RFC 7240 has it: does the client want no connection to wait? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "proxy/judge/tickets/prefer.h"
#include "tests/kit.h"

static const struct {
    const char *value, *second;
    bool async;
    uint64_t wait_ms;
} rows[] = {
    {"respond-async", NULL, true, 0},
    {"Respond-Async", NULL, true, 0},
    {"return=minimal, respond-async", NULL, true, 0},
    {"respond-async, wait=10", NULL, true, 10000},
    {"wait=10", "respond-async", true, 10000},
    {" respond-async ;foo=\"bar\" , wait = \"7\" ", NULL, true, 7000},
    {"respond-async, wait=5, wait=9", NULL, true, 5000},
    {"respond-async, wait=99999999", NULL, true, 0}, /* longer than anybody waits: not understood */
    {"respond-async, wait=-1", NULL, true, 0},
    {"respond-async=\"\"", NULL, true, 0}, /* as if there were none */
    {"respond-async=1", NULL, false, 0},
    {"respond-asynchronously", NULL, false, 0},
    {"foo=\"a, respond-async\"", NULL, false, 0},
    {"foo=\"a\\\", respond-async, \"", NULL, false, 0},
    {"foo; respond-async", NULL, false, 0},
    {"wait=3", NULL, false, 3000},
    {"", NULL, false, 0},
    {NULL, NULL, false, 0},
};

static void each_row_says_what_it_says(void **state)
{
    static struct wire_request r;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t wait_ms = 1;
        r.nfields = 0;
        r.field[r.nfields++] = (struct http_field){SPAN("X-Prefer"), SPAN("respond-async")};
        if (rows[i].value)
            r.field[r.nfields++] = (struct http_field){SPAN("prefer"), span_str(rows[i].value)};
        if (rows[i].second)
            r.field[r.nfields++] = (struct http_field){SPAN("Prefer"), span_str(rows[i].second)};
        if (prefer_async(&r, &wait_ms) != rows[i].async || wait_ms != rows[i].wait_ms)
            fail_msg("%s: %llu", rows[i].value ? rows[i].value : "none", (unsigned long long)wait_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_row_says_what_it_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
