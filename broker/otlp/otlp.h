/* Spans of OpenTelemetry, as OTLP has them in JSON: ids in hexadecimal, whole numbers of 64 bits as texts, times in
 * nanoseconds since 1970. */
#ifndef BROKER_OTLP_OTLP_H
#define BROKER_OTLP_OTLP_H

#include "common/dynbuf.h"

enum {
    OTLP_TEXT_MAX = 128,         /* bytes of one text of a span, as it is written */
    OTLP_SPAN_MAX = 8 * 1024,    /* bytes of a span */
    OTLP_BATCH_MAX = 512 * 1024, /* bytes of the spans of a request */
    OTLP_HEAD_MAX = 1024,        /* bytes of what stands around them */
    OTLP_TRACE_TEXT = 32,        /* digits of a trace's id */
    OTLP_ID_TEXT = 16,           /* of a span's */
    OTLP_PARENT_TEXT = 3 + OTLP_TRACE_TEXT + 1 + OTLP_ID_TEXT + 3
};

enum otlp_kind {
    OTLP_NOTHING = 0,
    OTLP_TURN, /* invoke_agent: the root of its trace */
    OTLP_CHAT, /* chat: one question to one model */
    OTLP_CALL  /* execute_tool */
};

/* What is written of one: names that are empty and numbers that are not known are left out. */
struct otlp_span {
    enum otlp_kind kind;
    struct span conversation, turn; /* their ids as text */
    uint64_t epoch;                 /* so often the turn was taken */
    uint64_t step, attempt, try;    /* of a chat; try: which of the attempt's models, from 0 */
    uint64_t ord;                   /* of a call in its step */
    uint64_t begun_ms, ended_ms;    /* since 1970; an end before the begin is written as the begin */
    const char *error;              /* one of a few words; NULL: it went well */
    struct span provider, asked;    /* of a turn: of the model that was asked last */
    /* a chat */
    struct span answered;                                       /* what it calls itself */
    bool first, counted;                                        /* something came; its provider has counted */
    bool unasked;                                               /* it was not sent: its time says nothing of it */
    uint64_t first_ms;                                          /* from the begin */
    uint64_t input, cache_read, cache_write, output, reasoning; /* tokens; input is all of them, output too */
    /* a call */
    struct span tool, call; /* its name, the call's id */
    struct span as;         /* what it is measured as */
    bool mcp, remote;       /* of an MCP server; remote: over HTTP */
    struct span version;    /* of its protocol */
    uint64_t request;       /* the number of the request there */
};

/* SHA-256 of the texts of conversation and turn, one behind the other: its first 16 bytes. */
void otlp_trace_id(const struct otlp_span *s, char out[OTLP_TRACE_TEXT + 1]);
/* SHA-256 of "TURN", "TURN/STEP/model/ATTEMPT.TRY" or "TURN/STEP/call/ORD.EPOCH": its first 8 bytes. */
void otlp_span_id(const struct otlp_span *s, char out[OTLP_ID_TEXT + 1]);
/* W3C's traceparent of what is done below it: version 00, trace, span, and that it is sent. */
void otlp_traceparent(const struct otlp_span *s, char out[OTLP_PARENT_TEXT + 1]);
/* One object. A failed buffer: it has no room. */
void otlp_put(struct dynbuf *out, const struct otlp_span *s);
/* Who says it: of which version, and which of its processes. */
struct otlp_who {
    struct span version, instance;
};
/* The body of a request with these: what otlp_put wrote, with commas between them. */
void otlp_batch(struct dynbuf *out, const struct otlp_who *who, struct span spans);

#endif
