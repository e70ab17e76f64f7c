/* Which models may see a conversation: a part of test_serve.c, which has it behind its own desk and callers. */
#ifndef TESTS_UNIT_BROKER_BROUGHT_CLOSED_H
#define TESTS_UNIT_BROKER_BROUGHT_CLOSED_H

/* Said whole, of models that there are, when it begins: else it is not begun at all. */
static void a_private_conversation_is_one_from_its_begin(void **state)
{
    static const struct span models[] = {{(const uint8_t *)"one", 3},
                                         {(const uint8_t *)"two", 3},
                                         {(const uint8_t *)"a\nb", 3},
                                         {(const uint8_t *)"sum", 3}};
    static const char *const refused[][2] = {
        {"{\"message\":\"x\",\"private\":[]}", "one at least"},
        {"{\"message\":\"x\",\"private\":null}", "one at least"},
        {"{\"message\":\"x\",\"private\":\"one\"}", "one at least"},
        {"{\"message\":\"x\",\"private\":[\"one\",\"three\"]}", "`three`, which is no model"},
        {"{\"message\":\"x\",\"private\":[\"one\",\"\"]}", "``, which is no model"},
        {"{\"message\":\"x\",\"private\":[\"one\",7]}", "which is no model"},
        {"{\"message\":\"x\",\"private\":[\"a\\nb\"]}", "which is no model"},         /* it would be two names */
        {"{\"message\":\"x\",\"private\":[\"sum\"]}", "no model that answers turns"}, /* it only summarises */
        {"{\"message\":\"x\",\"private\":[\"one\",\"one\"]}", "`one` twice"}};
    struct bstore_conversations all;
    const struct id none = {{0}};
    char say[128], id[ID_TEXT + 1], what[64];
    serve.model = models;
    serve.models = 4;
    serve.answer = models + 1;
    serve.answers = 1;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        refused_chat(refused[i][0], refused[i][1]);
    fix_ok(bstore_conversations(fix, SPAN("default"), &none, &fix_arena, &all));
    assert_int_equal(all.n, 0);
    struct asker *a = knocks(&own_door);
    asks(a, "", "POST /chat", "{\"message\":\"x\",\"private\":[\"sum\",\"two\"]}");
    until(a, "HTTP/1.1 202 ");
    asks(a, "", "GET /conversations", "");
    until(a, "\"private\":[\"sum\",\"two\"]");
    fix_ok(bstore_conversations(fix, SPAN("default"), &none, &fix_arena, &all));
    id_text(&all.row[0].id, id);
    snprintf(what, sizeof(what), "GET /conversations/%s", id);
    asks(a, "", what, "");
    until(a, "\"private\":[\"sum\",\"two\"]");
    leaves(a);
    snprintf(say, sizeof(say), "{\"message\":\"x\",\"conversation_id\":\"%s\",\"private\":[\"one\"]}", id);
    refused_chat(say, "are not said together");
}

/* Nor is it sent to another one by doing its turns once more. */
static void a_private_turn_is_replayed_by_its_own_models_alone(void **state)
{
    static const struct span models[] = {{(const uint8_t *)"one", 3}, {(const uint8_t *)"two", 3}};
    const struct bstore_chat in = {.tenant = SPAN("acme"), .body = SPAN("{}"), .private = SPAN("one")};
    struct bstore_chatted t;
    fix_ok(bstore_chat(fix, &in, &t));
    struct claim c = fix_claim(1);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    serve.model = models;
    serve.models = 2;
    live(&own_door, "", &t.turn, "{\"model\":\"two\"}", "its conversation is private, and `two` is not in its list");
    live(&own_door, "", &t.turn, "{\"model\":\"one\"}", "HTTP/1.1 202 ");
}

#endif
