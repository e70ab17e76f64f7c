/* Whom the desk brings to the broker: a part of test_serve.c, which has it behind its own desk and callers. */
#ifndef TESTS_UNIT_BROKER_BROUGHT_BROUGHT_H
#define TESTS_UNIT_BROKER_BROUGHT_BROUGHT_H

/* The desk sends a stream of somebody's, with these words and so much behind them. NULL: without a stream. */
static struct asker *is_brought(const char *tenant, const char *who, const char *more, bool stream)
{
    struct dynbuf *b = chan_begin(desk, M_BROKER_TALK, 1);
    int fd[2];
    assert_non_null(b);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    msg_put_span(b, span_str(tenant));
    msg_put_span(b, span_str(who));
    assert_int_equal(dynbuf_add(b, span_str(more)), 0);
    assert_int_equal(stream ? chan_commit_fd(desk, fd[1]) : chan_commit(desk), 0);
    close(fd[1]);
    return asker_at(fd[0]);
}

/* It is of the tenant that the desk says, whatever it brings itself; what it says has the operator's name with it. */
static void whom_the_desk_brings_is_of_that_tenant_and_says_things_in_their_name(void **state)
{
    struct bstore_conversations all;
    const struct id none = {{0}};
    char what[64] = "GET /conversations/";
    struct asker *a = is_brought("default", "kim", "", true), *other = knocks(&door);
    asks(a, "csb_acme", "POST /chat", "{\"message\":\"x\",\"by\":\"lee\"}");
    until(a, "HTTP/1.1 400 "); /* nobody says who they are by themselves */
    asks(a, "csb_acme", "POST /chat", "{\"message\":\"\\\"by\\\":\\\"lee\\\"\"}");
    until(a, "HTTP/1.1 202 ");
    fix_ok(bstore_lately(fix, SPAN("default"), &none, &fix_arena, &all));
    assert_int_equal(all.n, 1);
    id_text(&all.row[0].id, what + strlen(what));
    asks(a, "", what, "");
    until(a, "\"waits\":");
    assert_true(heard(a, "\"by\":\"kim\"") && heard(a, "\"busy\":true") && heard(a, "\"state\":\"queued\""));
    leaves(a);
    asks(other, "csb_acme", what, ""); /* a key sees its own tenant's alone */
    until(other, "HTTP/1.1 404 ");
    leaves(other);
}

/* A conversation belongs to who began it: on the page nobody else speaks in it, or ends a turn of it, not even once a
 * key has spoken in it. */
static void on_the_page_who_began_a_conversation_speaks_in_it_alone(void **state)
{
    struct bstore_chatted theirs = fix_chat("default", NULL); /* a key's */
    struct bstore_conversations all;
    const struct id none = {{0}};
    struct asker *kim = is_brought("default", "kim", "", true), *lee = is_brought("default", "lee", "", true);
    char say[128], stop[64] = "POST /turns/", id[ID_TEXT + 1];
    id_text(&theirs.conversation, id);
    snprintf(say, sizeof(say), "{\"message\":\"x\",\"conversation_id\":\"%s\"}", id);
    asks(kim, "", "POST /chat", say);
    until(kim, "HTTP/1.1 403 ");
    fix_ok(bstore_cancel(fix, SPAN("default"), &theirs.turn));
    asks(kim, "", "POST /chat", say); /* nor when nothing of it is there any more */
    until(kim, "HTTP/1.1 403 ");
    asks(kim, "", "POST /chat", "{\"message\":\"x\"}");
    until(kim, "HTTP/1.1 202 ");
    fix_ok(bstore_lately(fix, SPAN("default"), &none, &fix_arena, &all));
    const struct id own = id_eq(&all.row[0].id, &theirs.conversation) ? all.row[1].id : all.row[0].id;
    id_text(&own, id);
    snprintf(say, sizeof(say), "{\"message\":\"x\",\"conversation_id\":\"%s\"}", id);
    for (int begun = 0; begun < 2; begun++) { /* as long as it waits, and when its first message is there */
        asks(lee, "", "POST /chat", say);
        until(lee, "HTTP/1.1 403 ");
        assert_true(heard(lee, "begun by kim"));
        asks(kim, "", "POST /chat", say);
        until(kim, "HTTP/1.1 202 ");
        struct bstore_chatted by_key = fix_chat("default", &own);
        id_text(&by_key.turn, stop + 12);
        memcpy(stop + 12 + ID_TEXT, "/cancel", 8);
        asks(lee, "", stop, "");
        until(lee, "HTTP/1.1 403 ");
        asks(kim, "", stop, "");
        until(kim, "HTTP/1.1 202 ");
        if (begun == 0)
            (void)fix_claim(1);
    }
    leaves(kim);
    leaves(lee);
}

/* Without a tenant, a name or a stream, or with more than these: nobody has come. */
static void what_the_desk_did_not_say_whole_is_nobody(void **state)
{
    static const struct {
        const char *tenant, *who, *more;
    } rows[] = {{"", "kim", ""},
                {"default", "", ""},
                {"default", "kim", "x"},
                {"default", "0123456789012345678901234567890123456789012345678", ""}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct asker *a = is_brought(rows[i].tenant, rows[i].who, rows[i].more, true);
        until(a, NULL);
        assert_null(serve.callers);
        leaves(a);
    }
    leaves(is_brought("default", "kim", "", false));
    struct asker *last = is_brought("default", "kim", "", true); /* behind it, in order */
    asks(last, "", "GET /conversations/lately", "");
    until(last, "HTTP/1.1 200 ");
    leaves(last);
}

/* Its stream has no key that could be taken back; it ends with the desk, which holds the other end. */
static void whom_the_desk_brings_needs_no_key_while_a_stream_is_open(void **state)
{
    struct bstore_chatted t = fix_chat("default", NULL);
    struct claim c = fix_claim(1);
    struct asker *a = opens(is_brought("default", "kim", "", true), "", &t.conversation);
    desk_is_silent = true;
    clock_ms += SERVE_UNSURE_MS + 1;
    dynbuf_reset(&a->heard);
    heart(&serve);
    until(a, "heartbeat");
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    leaves(a);
}

/* More than one answer of the store has: the newest is there, and how many older ones are not. */
static void what_was_said_last_is_shown(void **state)
{
    static char body[700 * 1024];
    struct bstore_chatted t = fix_chat("default", NULL);
    struct claim c = fix_claim(1);
    const struct bstore_plan none = {.answer = SPAN("{}")};
    char what[64] = "GET /conversations/";
    for (uint64_t n = 1; n <= 12; n++) {
        int len = snprintf(body, sizeof(body),
                           "{\"of\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"number %llu %0*d\"}]}",
                           (unsigned long long)n, 600 * 1024, 0);
        const struct bstore_message m = {SPAN("assistant"), span_of(body, (size_t)len)};
        uint64_t attempts;
        fix_ok(bstore_step(fix, &c, n, SPAN("chat"), &attempts));
        fix_ok(bstore_plan(fix, &c, n, &none));
        fix_ok(bstore_settle(fix, &c, n, &(struct bstore_settle){.message = &m, .messages = 1}));
    }
    id_text(&t.conversation, what + strlen(what));
    struct asker *a = is_brought("default", "kim", "", true);
    asks(a, "", what, "");
    until(a, "\"waits\":");
    assert_true(heard(a, "number 12 ") && heard(a, "\"older\":0"));
    leaves(a);
}

#endif
