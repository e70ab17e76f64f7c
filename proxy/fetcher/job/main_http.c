/* countersign-fetch-http: ask one server what a source of this kind asks. */
#include "common/role/role.h"
#include "policy/policy.h"
#include "proxy/fetcher/job/gates/gate.h"
#include "proxy/fetcher/job/sources.h"
#include "proxy/fetcher/job/tell.h"

static const struct {
    unsigned kind; /* enum source_kind, or a FETCH_ */
    unsigned asks; /* at most */
    void (*run)(const struct job *j, struct http *h);
} kinds[] = {
    {SOURCE_OAUTH2, 1, source_oauth2}, {SOURCE_VAULT, 3, source_vault},     {SOURCE_GITHUB_APP, 1, source_github_app},
    {SOURCE_AWS, 1, source_aws},       {SOURCE_TENCENT, 1, source_tencent}, {FETCH_TELL, 1, tell},
    {FETCH_OIDC, 1, source_oidc},      {FETCH_GATE_HOOK, 1, gate_webhook},  {FETCH_GATE_MODEL, 1, gate_model}};

enum { MORE_ASKS = 2 /* of what was given before: to renew it, or to give it back */ };

int main(void)
{
    static struct job j;
    static const struct wall wall = {.calls = WALL_PAIR};
    struct err e = {{0}};
    role_job_start("fetch-http");
    job_read(&j);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (j.ask.kind != kinds[i].kind)
            continue;
        unsigned more = wire_setting(&j.ask, SPAN("held"), 0).n ? MORE_ASKS : 0;
        struct http *h = http_open(&j, kinds[i].asks + more, &e);
        if (h == NULL)
            job_failed(&j, "%s", e.text);
        role_confine_alone(&wall); /* the connections are made; what comes over them is read behind it */
        kinds[i].run(&j, h);
    }
    job_failed(&j, "this program does not know sources of that kind");
}
