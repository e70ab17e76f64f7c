#include "broker/otlp/names.h"

static const char *const names[OTLP_NAMES] = {
    [OTLP_OPERATION] = "gen_ai.operation.name",
    [OTLP_PROVIDER] = "gen_ai.provider.name",
    [OTLP_CONVERSATION] = "gen_ai.conversation.id",
    [OTLP_AGENT] = "gen_ai.agent.name",
    [OTLP_REQUEST_MODEL] = "gen_ai.request.model",
    [OTLP_RESPONSE_MODEL] = "gen_ai.response.model",
    [OTLP_REQUEST_STREAM] = "gen_ai.request.stream",
    [OTLP_FIRST_CHUNK] = "gen_ai.response.time_to_first_chunk",
    [OTLP_INPUT_TOKENS] = "gen_ai.usage.input_tokens",
    [OTLP_CACHE_READ] = "gen_ai.usage.cache_read.input_tokens",
    [OTLP_CACHE_CREATION] = "gen_ai.usage.cache_creation.input_tokens",
    [OTLP_OUTPUT_TOKENS] = "gen_ai.usage.output_tokens",
    [OTLP_REASONING_TOKENS] = "gen_ai.usage.reasoning.output_tokens",
    [OTLP_TOOL] = "gen_ai.tool.name",
    [OTLP_TOOL_CALL] = "gen_ai.tool.call.id",
    [OTLP_ERROR] = "error.type",
    [OTLP_MCP_METHOD] = "mcp.method.name",
    [OTLP_MCP_VERSION] = "mcp.protocol.version",
    [OTLP_RPC_ID] = "jsonrpc.request.id",
    [OTLP_TRANSPORT] = "network.transport",
    [OTLP_TURN_ID] = "countersign.turn.id",
    [OTLP_STEP] = "countersign.step",
    [OTLP_ATTEMPT] = "countersign.attempt",
    [OTLP_EPOCH] = "countersign.epoch",
    [OTLP_TOKEN_TYPE] = "gen_ai.token.type",
    [OTLP_OVERFLOW] = "otel.metric.overflow",
};
static const struct {
    const char *name, *unit;
} metrics[OTLP_METRICS] = {
    [OTLP_CHAT_TIME] = {"gen_ai.client.operation.duration", "s"},
    [OTLP_FIRST_TIME] = {"gen_ai.client.operation.time_to_first_chunk", "s"},
    [OTLP_TOKENS] = {"gen_ai.client.token.usage", "{token}"},
    [OTLP_TOOL_TIME] = {"gen_ai.execute_tool.duration", "s"},
};

const char *otlp_name(enum otlp_name n)
{
    return (unsigned)n < OTLP_NAMES ? names[n] : "";
}

const char *otlp_metric_name(enum otlp_metric m)
{
    return (unsigned)m < OTLP_METRICS ? metrics[m].name : "";
}

const char *otlp_metric_unit(enum otlp_metric m)
{
    return (unsigned)m < OTLP_METRICS ? metrics[m].unit : "";
}
