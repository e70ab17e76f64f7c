/* Attributes of spans and metrics, and metrics themselves, by their names: OpenTelemetry's conventions for generative
 * AI, which are in development, and our own, which begin with countersign. Nothing else writes such a name. */
#ifndef BROKER_OTLP_NAMES_H
#define BROKER_OTLP_NAMES_H

/* Where a reader of them finds what the names mean. */
#define OTLP_SCHEMA "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"

enum otlp_name {
    OTLP_OPERATION,      /* invoke_agent, chat, execute_tool */
    OTLP_PROVIDER,       /* of the model */
    OTLP_CONVERSATION,   /* its id */
    OTLP_AGENT,          /* countersign */
    OTLP_REQUEST_MODEL,  /* as it was asked for */
    OTLP_RESPONSE_MODEL, /* as it calls itself */
    OTLP_REQUEST_STREAM, /* true */
    OTLP_FIRST_CHUNK,    /* seconds from the request to what came first */
    OTLP_INPUT_TOKENS,   /* with those of caches */
    OTLP_CACHE_READ,     /* of them, read from a cache */
    OTLP_CACHE_CREATION, /* of them, written to one */
    OTLP_OUTPUT_TOKENS,
    OTLP_REASONING_TOKENS, /* of them */
    OTLP_TOOL,             /* its name */
    OTLP_TOOL_CALL,        /* the call's id */
    OTLP_ERROR,            /* what kind of end it was, where that is none */
    OTLP_MCP_METHOD,       /* tools/call */
    OTLP_MCP_VERSION,      /* of the protocol */
    OTLP_RPC_ID,           /* of the request */
    OTLP_TRANSPORT,        /* pipe: over stdio; tcp: over HTTP */
    OTLP_TURN_ID,          /* ours: the turn, */
    OTLP_STEP,             /* which of its steps, */
    OTLP_ATTEMPT,          /* so often it has asked a model */
    OTLP_EPOCH,            /* so often the turn was taken */
    OTLP_TOKEN_TYPE,       /* of a metric: input or output */
    OTLP_OVERFLOW,         /* of a metric: true, of all that is not told apart */
    OTLP_NAMES
};
const char *otlp_name(enum otlp_name n);

enum otlp_metric {
    OTLP_CHAT_TIME,  /* a question to a model, to its end */
    OTLP_FIRST_TIME, /* until something of an answer came */
    OTLP_TOKENS,     /* of one question, or its answer */
    OTLP_TOOL_TIME,  /* a call, to its end */
    OTLP_METRICS
};
const char *otlp_metric_name(enum otlp_metric m);
const char *otlp_metric_unit(enum otlp_metric m);

#endif
