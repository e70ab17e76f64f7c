/* countersign doctor: the policy in force, as the gateway keeps it */
#include <stdio.h>

#include "cli/doctor/findings.h"
#include "common/net/tls.h"
#include "policy/load/stored.h"

void doctor_policy(struct findings *f, const char *dir, struct span digest)
{
    char hex[STORED_HEX + 1];
    struct stored s = {.n = 0};
    struct err e = {""};

    if (stored_find(dir, digest, hex, &e) != 0 || stored_open(dir, hex, &s, &e) != 0 || stored_read(dir, &s, &e) != 0)
        finding(f, FINDING_NOTE, "policy", NULL, NULL, "the policy in force cannot be looked at from here: %s",
                e.text);
    for (size_t i = 0; e.text[0] == '\0' && i < s.n; i++) {
        struct err lacks = {""};
        if (s.v[i].kind == POLICY_REF_CA && tls_roots_strict(s.v[i].text, &lacks) != 0 && lacks.text[0])
            finding(f, FINDING_NOTE, "policy", NULL, NULL,
                    "%.*s: %s; certificates below it are checked without X509_STRICT", SPAN_FMT(s.v[i].name),
                    lacks.text);
    }
    stored_free(&s);
}
