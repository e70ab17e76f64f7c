/* Events as the three protocols send them. */
#ifndef TESTS_UNIT_MODELS_STREAMS_H
#define TESTS_UNIT_MODELS_STREAMS_H

/* Anthropic Messages */
#define A_START(usage)                                                                                               \
    EVENT("message_start",                                                                                           \
          "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_01\",\"type\":\"message\",\"role\":\"assistant\","  \
          "\"model\":\"claude-x\",\"content\":[],\"stop_reason\":null,\"usage\":" usage "}}")
#define A_BEGIN(i, block)                                                                                            \
    EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":" i ",\"content_block\":" block "}")
#define A_DELTA(i, delta)                                                                                            \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":" i ",\"delta\":" delta "}")
#define A_TEXT(i, text) A_DELTA(i, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define A_ARGS(i, text) A_DELTA(i, "{\"type\":\"input_json_delta\",\"partial_json\":\"" text "\"}")
#define A_END(i)        EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":" i "}")
#define A_WHY(reason, out)                                                                                           \
    EVENT("message_delta",                                                                                           \
          "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null},"           \
          "\"usage\":{\"output_tokens\":" out "}}")
#define A_STOP              EVENT("message_stop", "{\"type\":\"message_stop\"}")
#define A_PING              EVENT("ping", "{\"type\": \"ping\"}")
#define A_CALL(i, id, name) A_BEGIN(i, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}")

/* OpenAI Chat Completions */
#define C_ABOUT(rest)                                                                                                \
    CHUNK("{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-x\"," rest "}")
#define C_DELTA(delta) C_ABOUT("\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":null}]")
#define C_WHY(reason)  C_ABOUT("\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]")
#define C_CALLS(calls) C_DELTA("\"tool_calls\":[" calls "]")
#define C_USAGE(usage) C_ABOUT("\"choices\":[],\"usage\":{" usage "}")
#define C_DONE         CHUNK("[DONE]")

/* OpenAI Responses */
#define R_ABOUT                                                                                                      \
    "\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"model\":\"gpt-y\",\"status\":\"in_progress\","        \
    "\"output\":[]}"
#define R_START                                                                                                      \
    EVENT("response.created", "{\"type\":\"response.created\",\"sequence_number\":0," R_ABOUT "}")                   \
    EVENT("response.in_progress", "{\"type\":\"response.in_progress\",\"sequence_number\":1," R_ABOUT "}")
#define R_ITEM(what, i, item)                                                                                        \
    EVENT("response.output_item." what,                                                                              \
          "{\"type\":\"response.output_item." what "\",\"output_index\":" i ",\"item\":{" item "}}")
#define R_DELTA(what, i, text)                                                                                       \
    EVENT("response." what ".delta", "{\"type\":\"response." what ".delta\",\"output_index\":" i                     \
                                     ",\"content_index\":0,\"delta\":\"" text "\"}")
#define R_END(what, rest)                                                                                            \
    EVENT("response." what,                                                                                          \
          "{\"type\":\"response." what "\",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-y\"," rest "}}")
#define R_USAGE                                                                                                      \
    "\"usage\":{\"input_tokens\":30,\"input_tokens_details\":{\"cached_tokens\":10},\"output_tokens\":8,\"output_"   \
    "tokens_details\":{\"reasoning_tokens\":5}}"
#define R_USED    "used 20+10+0>8(5) resp_1 gpt-y\n"
#define R_MESSAGE "\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\""
#define R_CALL(id, name, args)                                                                                       \
    "\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"" id "\",\"name\":\"" name "\",\"arguments\":\"" args "\""

#endif
