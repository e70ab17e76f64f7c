/* The audit in words: what people read is what the record says, and no more than a line of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/control/audit_words.h"

#define PLACE "\"method\":\"POST\",\"scheme\":\"https\",\"host\":\"a.example\",\"port\":443,\"path\":\"/x\","

static const struct {
    const char *record, *words, *target;
    bool news;
} cases[] = {
    {"{\"kind\":\"result\"," PLACE
     "\"effect\":\"read\",\"outcome\":\"answered\",\"status\":200,\"code\":\"rule\",\"delivered\":true}",
     "read allowed, answered 200", "POST a.example/x", true},
    {"{\"kind\":\"result\",\"op\":\"git.push\",\"effect\":\"write\",\"outcome\":\"answered\",\"status\":200,\"code\":"
     "\"rule\",\"delivered\":true}",
     "push sent, answered 200", "", true},
    {"{\"kind\":\"result\",\"effect\":\"delete\",\"outcome\":\"answered\",\"status\":204,\"code\":\"rule\","
     "\"delivered\":false}",
     "delete sent, answered 204; nobody was there for the answer", "", true},
    {"{\"kind\":\"result\",\"effect\":\"write\",\"outcome\":\"answered\",\"status\":200,\"code\":\"answer-refused\","
     "\"delivered\":false}",
     "write sent, answered 200: answer-refused", "", true},
    {"{\"kind\":\"result\",\"effect\":\"write\",\"outcome\":\"not-sent\",\"code\":\"upstream-failed\"}",
     "write not sent: upstream-failed", "", true},
    {"{\"kind\":\"result\",\"outcome\":\"unknown\",\"why\":\"the gateway ended while it was under way\"}",
     "request sent, outcome unknown: the gateway ended while it was under way", "", true},
    {"{\"kind\":\"result\",\"effect\":\"read\",\"outcome\":\"unknown\",\"code\":\"rule\"}",
     "read got no whole answer", "", true},
    {"{\"kind\":\"ticket-opened\",\"ticket\":\"ny5v9j8y3kaaaaaaaaaaaaaaaa\",\"op\":\"git.push\",\"summary\":\"Push 1 "
     "ref\"," PLACE "\"effect\":\"write\"}",
     "push held: ticket ny5v9j8y3k", "Push 1 ref", true},
    {"{\"kind\":\"ticket-decided\",\"ticket\":\"ny5v9j8y3kaaaa\",\"state\":\"approved\",\"by\":\"uid 0\","
     "\"channel\":\"cli\",\"reason\":\"\"}",
     "ticket ny5v9j8y3k approved by root (cli)", "", true},
    {"{\"kind\":\"ticket-decided\",\"ticket\":\"ny5v9j8y3kaaaa\",\"state\":\"denied\",\"by\":\"ann\",\"channel\":"
     "\"page\",\"reason\":\"not today\"}",
     "ticket ny5v9j8y3k denied by ann (page): not today", "", true},
    {"{\"kind\":\"ticket-expired\",\"ticket\":\"ny5v9j8y3kaaaa\",\"state\":\"expired\",\"by\":\"time\",\"channel\":"
     "\"\",\"reason\":\"nobody decided in time\"}",
     "ticket ny5v9j8y3k expired: nobody decided in time", "", true},
    {"{\"kind\":\"denied\",\"verdict\":\"deny\",\"code\":\"host-not-named\",\"method\":\"GET\",\"scheme\":\"http\","
     "\"host\":\"b.example\",\"port\":8080,\"path\":\"/y?z\"}",
     "denied: no rule names this host with this port and scheme", "GET b.example:8080/y?z", true},
    {"{\"kind\":\"denied\",\"verdict\":\"deny\",\"code\":\"rule\",\"rule\":{\"id\":\"no-push\",\"file\":\"p.yaml\","
     "\"line\":7}}",
     "denied by rule no-push (p.yaml:7)", "", true},
    {"{\"kind\":\"result\",\"effect\":\"read\",\"outcome\":\"not-sent\",\"code\":\"credential-unavailable\"}",
     "read not sent: its credential is not there: see `countersign doctor`", "", true},
    {"{\"kind\":\"denied\",\"verdict\":\"deny\",\"code\":\"strange\"}", "denied: strange", "", true},
    {"{\"kind\":\"denied\",\"verdict\":\"deny\",\"code\":\"unclassified\",\"cause\":\"key-twice\"}",
     "denied: it could not be understood: key-twice", "", true},
    {"{\"kind\":\"denied\",\"verdict\":\"hold\",\"code\":\"held\",\"op\":\"git.push\"}",
     "push waits; its client may repeat it", "", true},
    {"{\"kind\":\"denied\",\"verdict\":\"hold\",\"code\":\"ticket-denied\"}", "refused: its ticket was denied", "",
     true},
    {"{\"kind\":\"denied\",\"verdict\":\"allow\",\"code\":\"gateway-restarting\"}", "refused: gateway-restarting", "",
     true},
    {"{\"kind\":\"answered\",\"effect\":\"read\",\"code\":\"stub\",\"credential\":\"keys\"}",
     "answered here, as a stub of keys", "", true},
    {"{\"kind\":\"start\"}", "the gateway started", "", true},
    {"{\"kind\":\"start\",\"for\":\"secrets\"}", "the store was opened for `countersign secret`, no gateway ran", "",
     true},
    {"{\"kind\":\"note\",\"from\":\"parent\",\"about\":\"policy\",\"what\":{\"policy\":\"656da4495616c3ca\"}}",
     "policy 656da44956 is in force", "", true},
    {"{\"kind\":\"note\",\"from\":\"parent\",\"about\":\"policy\",\"what\":{\"policy\":\"656da4495616c3ca\",\"how\":"
     "\"rollback\",\"by\":\"uid 0\",\"from\":\"1234567890abcd\",\"pinned_by\":\"uid 0\"}}",
     "policy 656da44956 is in force (rollback by root, before it 1234567890, pinned)", "", true},
    {"{\"kind\":\"note\",\"from\":\"parent\",\"about\":\"policy-refused\",\"what\":{\"how\":\"reload\",\"why\":\"a:"
     "1\"}}",
     "a policy was refused, and nothing changed (reload): a:1", "", true},
    {"{\"kind\":\"note\",\"from\":\"keeper\",\"about\":\"secret\",\"what\":{\"secret\":\"s\",\"act\":\"set\",\"uid\":"
     "0}}",
     "secret s: set by root", "", true},
    {"{\"kind\":\"note\",\"from\":\"desk\",\"about\":\"sign-in\",\"what\":{\"operator\":\"ann\",\"deep\":{}}}",
     "note of the desk about sign-in, operator ann", "", true},
    {"{\"kind\":\"note\",\"from\":\"desk\",\"about\":\"x\",\"what\":\"text\"}", "note of the desk about x", "", true},
    {"{\"kind\":\"sandbox\",\"how\":\"run\",\"generation\":3,\"gone\":false}",
     "sandbox made known (run, generation 3)", "", false},
    {"{\"kind\":\"sandbox\",\"gone\":true}", "sandbox removed", "", false},
    {"{\"kind\":\"run\",\"command\":\"3.7\",\"argv\":{\"words\":[\"npm\",\"test\"]}}", "command 3.7 begun: npm test",
     "", false},
    {"{\"kind\":\"run-end\",\"command\":\"3.7\",\"how\":\"exited\",\"status\":4}", "command 3.7: exited 4", "", true},
    {"{\"kind\":\"run-end\",\"command\":\"3.7\",\"how\":\"unknown\",\"why\":\"the warden ended\"}",
     "command 3.7: unknown: the warden ended", "", true},
    {"{\"kind\":\"websocket\",\"effect\":\"read\",\"messages_out\":0,\"messages_in\":12," PLACE "\"closed\":1000}",
     "read: the WebSocket ended, 0 messages sent, 12 received", "POST a.example/x", true},
    {"{\"kind\":\"websocket\",\"effect\":\"write\",\"messages_out\":1,\"messages_in\":0,\"code\":\"secret-in-"
     "message\"}",
     "write: the WebSocket ended, 1 messages sent, 0 received; secret-in-message", "", true},
    {"{\"kind\":\"lease-issued\",\"lease\":\"ny5v9j8y3kaaaa\",\"credential\":\"github\",\"by\":\"ann\"}",
     "lease ny5v9j8y3k of github issued by ann", "", true},
    {"{\"kind\":\"lease-revoked\",\"lease\":\"ny5v9j8y3kaaaa\",\"credential\":\"github\",\"by\":\"\",\"how\":\"its "
     "sandbox ended\"}",
     "lease ny5v9j8y3k of github revoked: its sandbox ended", "", true},
    {"{\"kind\":\"lease-leaked\",\"lease\":\"ny5v9j8y3kaaaa\",\"credential\":\"github\",\"used_by\":\"ci-8\",\"how\":"
     "\"another sandbox\"}",
     "lease ny5v9j8y3k of github leaked, used by ci-8: another sandbox", "", true},
    {"{\"kind\":\"intent\",\"effect\":\"write\"}", "write is about to be sent", "", false},
    {"{\"kind\":\"sent\"}", "its first byte has left", "", false},
    {"{\"kind\":\"denied\",\"scheme\":\"https\",\"host\":\"a.example\",\"port\":8443,\"verdict\":\"deny\",\"code\":"
     "\"ca-not-trusted\",\"op\":\"intercept\"}",
     "denied: the client does not trust the gateway's CA", "a.example:8443", true},
    {"{\"kind\":\"denied\",\"scheme\":\"http\",\"port\":22,\"verdict\":\"deny\",\"code\":\"bad-method\"}",
     "denied: bad-method", "port 22", true},
    {"{\"kind\":\"new-kind\"}", "new-kind", "", true},
    {"{}", "a record that is not understood: see --json", "", true},
    {"nonsense", "a record that is not understood: see --json", "", true},
};

static void every_kind_has_its_words(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena a;
        struct dynbuf words, target;
        arena_init(&a, 1 << 20);
        dynbuf_init(&words, 4096);
        dynbuf_init(&target, 4096);
        const struct json *r = json_parse(span_str(cases[i].record), &a);
        audit_words(r, &words);
        audit_target(r, &target);
        if (!span_eq(dynbuf_span(&words), span_str(cases[i].words)) ||
            !span_eq(dynbuf_span(&target), span_str(cases[i].target)))
            fail_msg("%s:\n\"%.*s\" \"%.*s\"", cases[i].record, SPAN_FMT(dynbuf_span(&words)),
                     SPAN_FMT(dynbuf_span(&target)));
        assert_int_equal(audit_is_news(r), cases[i].news);
        dynbuf_free(&words);
        dynbuf_free(&target);
        arena_free(&a);
    }
}

static void why_is_said_alone(void **state)
{
    static const char *const whys[][2] = {
        {"{\"verdict\":\"deny\",\"code\":\"rule\",\"rule\":{\"id\":\"r\",\"file\":\"p.yaml\",\"line\":7}}",
         "by rule r (p.yaml:7)"},
        {"{\"verdict\":\"deny\",\"code\":\"no-rule\"}", "no rule allows it"},
        {"{\"verdict\":\"deny\",\"code\":\"strange\",\"cause\":\"odd\"}", "strange"},
    };
    for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]); i++) {
        struct arena a;
        struct dynbuf out;
        arena_init(&a, 1 << 20);
        dynbuf_init(&out, 4096);
        audit_why(json_parse(span_str(whys[i][0]), &a), &out);
        if (!span_eq(dynbuf_span(&out), span_str(whys[i][1])))
            fail_msg("%.*s", SPAN_FMT(dynbuf_span(&out)));
        dynbuf_free(&out);
        arena_free(&a);
    }
}

static void a_target_is_cut(void **state)
{
    char text[400], path[200];
    for (size_t n = 86; n <= 87; n++) { /* with "GET a.example", 100 bytes is the most */
        struct arena a;
        struct dynbuf out;
        memset(path, 'p', n + 1);
        path[n + 1] = '\0';
        path[0] = '/';
        snprintf(text, sizeof(text), "{\"method\":\"GET\",\"host\":\"a.example\",\"path\":\"%s\"}", path);
        arena_init(&a, 1 << 20);
        dynbuf_init(&out, 4096);
        audit_target(json_parse(span_str(text), &a), &out);
        assert_int_equal(out.n, 100);
        assert_int_equal(span_ends(dynbuf_span(&out), SPAN("...")), n == 87);
        dynbuf_free(&out);
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_words),
        cmocka_unit_test(why_is_said_alone),
        cmocka_unit_test(a_target_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
