#include "tests/unit/keeper/fetch_fakes.h"

#include <stdio.h>

/* One credential a program, one a server; the settings of each, and a secret among them. */
static struct {
    struct setting s[6];
    size_t n;
} settings[] = {
    {{{SPAN("argv"), SOURCE_NONE, SPAN("/bin/op")}, {SPAN("env.T"), SOURCE_ENV, SPAN("TOKEN")}}, 2},
    {{{SPAN("url"), SOURCE_NONE, SPAN("https://Login.example:8443/token")},
      {SPAN("timeout"), SOURCE_NONE, SPAN("2000")}},
     2},
    {{{SPAN("url"), SOURCE_NONE, SPAN("http://login.example/token")}}, 1},
    {{{SPAN("argv"), SOURCE_NONE, SPAN("/bin/op")}, {SPAN("env.T"), SOURCE_STORE, SPAN("nowhere")}}, 2},
    {{{SPAN("argv"), SOURCE_NONE, SPAN("/bin/op")}, {SPAN("refresh_token"), SOURCE_STORE, SPAN("next")}}, 2},
    {{{SPAN("argv"), SOURCE_NONE, SPAN("/bin/op")},
      {SPAN("refresh_token"), SOURCE_STORE, SPAN("next")},
      {SPAN("scope"), SOURCE_NONE, SPAN("other")}},
     3},
    {{{SPAN("argv"), SOURCE_NONE, SPAN("/bin/op")},
      {SPAN("jwt.iss"), SOURCE_NONE, SPAN("app \"12\"")},
      {SPAN("jwt.key"), SOURCE_STORE, SPAN("next")},
      {SPAN("jwt.aud"), SOURCE_NONE, SPAN("them")}},
     4},
    {{{SPAN("url"), SOURCE_NONE, SPAN("https://sts.example")},
      {SPAN("role"), SOURCE_NONE, SPAN("arn:aws:iam::1:role/a")},
      {SPAN("key"), SOURCE_STORE, SPAN("next")},
      {SPAN("region"), SOURCE_NONE, SPAN("eu-central-1")}},
     4},
    {{{SPAN("url"), SOURCE_NONE, SPAN("https://login.example:8443/token")},
      {SPAN("downscope.options"), SOURCE_NONE, SPAN("{}")},
      {SPAN("assertion"), SOURCE_ENV, SPAN("TOKEN")},
      {SPAN("downscope.url"), SOURCE_NONE, SPAN("https://sts.example/v1/token")},
      {SPAN("timeout"), SOURCE_NONE, SPAN("2000")}},
     5},
    {{{SPAN("url"), SOURCE_NONE, SPAN("https://login.example:8443/token")},
      {SPAN("downscope.options"), SOURCE_NONE, SPAN("{1}")},
      {SPAN("assertion"), SOURCE_ENV, SPAN("TOKEN")},
      {SPAN("downscope.url"), SOURCE_NONE, SPAN("https://sts.example/v1/token")},
      {SPAN("timeout"), SOURCE_NONE, SPAN("2000")}},
     5},
    {{{SPAN("url"), SOURCE_NONE, SPAN("https://login.example:8443/token")},
      {SPAN("assertion"), SOURCE_ENV, SPAN("TOKEN")},
      {SPAN("timeout"), SOURCE_NONE, SPAN("2000")}},
     3},
    {{{SPAN("argv"), SOURCE_NONE, SPAN("/bin/op")},
      {SPAN("hosts"), SOURCE_NONE, SPAN("Vault.example")},
      {SPAN("hosts"), SOURCE_NONE, SPAN("login.example:8443")}},
     3},
};

bool policy_setting(const struct policy *p, const struct credential *c, size_t i, struct setting *out)
{
    static char text[32];
    if (c->settings >= MANY && i == 0) {
        *out = (struct setting){SPAN("argv"), SOURCE_NONE,
                                span_of(text, (size_t)snprintf(text, sizeof(text), "/bin/%u", c->settings))};
        return true;
    }
    if (c->settings >= MANY || i >= settings[c->settings].n)
        return false;
    *out = settings[c->settings].s[i];
    return true;
}

const char *policy_source_name(enum source_kind k)
{
    return k == SOURCE_EXEC ? "exec" : k == SOURCE_ENV ? "env" : k == SOURCE_STORE ? "store" : "none";
}

struct upstream server;

bool policy_upstream(const struct policy *p, struct span host, uint16_t port, struct arena *a, struct upstream *u)
{
    *u = server;
    return span_eq(host, SPAN("login.example")) && port == 8443;
}

struct secret *stored;

struct secret *vault_get(const struct vault *v, struct span name)
{
    return stored != NULL && span_eq(name, SPAN("next")) ? secret_new(secret_bytes(stored)) : NULL;
}

struct secret *vault_previous(const struct vault *v, struct span name, size_t i)
{
    return NULL;
}
