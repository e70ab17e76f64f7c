/* D23: what is left in the memory of who signed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "proxy/keeper/signer/signer.h"

enum { TOKEN = 200 };

static bool is_token(const uint8_t *p)
{
    size_t i = 0;
    while (i < TOKEN && p[i] == 'a' + i % 23)
        i++;
    return i == TOKEN;
}

/* Of what malloc gave and took back; locked memory (common/crypto/secret.h) is none of it. */
static bool heap_has_token(void)
{
    static char line[512];
    unsigned long from, to;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (!found && fgets(line, sizeof(line), maps) != NULL)
        if (strstr(line, "[heap]") != NULL && sscanf(line, "%lx-%lx", &from, &to) == 2)
            for (const uint8_t *p = (const uint8_t *)from; !found && p + TOKEN <= (const uint8_t *)to; p++)
                found = is_token(p);
    fclose(maps);
    return found;
}

static void a_session_token_does_not_stay(void **state)
{
    static char value[64 + TOKEN] = "AKIAEXAMPLE:a-secret-key-of-some-length:";
    const struct credential c = {.sign = SIGN_AWS4, .region = SPAN("us-east-1"), .service = SPAN("s3")};
    const struct wire_sign r = {.method = SPAN("GET"), .path = SPAN("/"), .payload = SPAN("UNSIGNED-PAYLOAD")};
    const struct signer_place at = {SPAN("https"), SPAN("s3.example"), 443};
    struct signature out;
    struct err e;
    size_t n = strlen(value);
    struct signer *s = signer_new();
    for (size_t i = 0; i < TOKEN; i++)
        value[n + i] = (char)('a' + i % 23);
    assert_int_equal(signer_sign(s, &c, span_of(value, n + TOKEN), &r, &at, 1795424400, &out, &e), 0);
    assert_int_equal(out.nfields, 3);
    signature_clear(&out);
    signer_free(&s);
    assert_false(heap_has_token()); /* of AddressSanitizer's heap, which is elsewhere, this says nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_session_token_does_not_stay)};
    return cmocka_run_group_tests_name("signer memory", tests, NULL, NULL);
}
