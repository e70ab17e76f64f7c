/* WebSocket frames (RFC 6455 section 5), sans-io, both directions. Strict: no extension bits, no reserved opcode,
 * shortest length encoding, masked from clients and unmasked from servers, control frames whole and at most 125
 * bytes, text that is UTF-8, close codes of section 7.4. Messages are joined from their fragments up to `max`. */
#ifndef COMMON_HTTP_WS_H
#define COMMON_HTTP_WS_H

#include "common/dynbuf.h"

enum ws_op { WS_NONE = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };
enum ws_side { WS_FROM_CLIENT = 1, WS_FROM_SERVER };
enum ws_result { WS_BAD = 0, WS_MORE, WS_OK };
enum ws_code {
    WS_NORMAL = 1000,
    WS_GOING = 1001,
    WS_PROTOCOL = 1002,
    WS_NOT_UTF8 = 1007,
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL = 1011
};

enum { WS_CONTROL_MAX = 125, WS_HEADER_MAX = 14 };

struct ws_reader {
    enum ws_side side;
    enum ws_op op;       /* of the message being joined; WS_NONE: none */
    bool broken;         /* or closed: nothing more is taken */
    struct dynbuf whole; /* its bytes, born with max */
    /* of the frame being read */
    bool in_frame, fin;
    uint8_t frame; /* its opcode */
    uint8_t mask[4], control[WS_CONTROL_MAX];
    size_t at, ncontrol;
    uint64_t left; /* bytes of it to come */
};
struct ws_message {
    enum ws_op op;
    struct span data; /* unmasked, valid until the next call; of a close: the reason */
    uint16_t code;    /* of a close; 0: none was given */
};

void ws_reader_init(struct ws_reader *r, enum ws_side side, size_t max);
void ws_reader_free(struct ws_reader *r);
/* Takes from the start of in. OK: one whole message or control frame. MORE: *used bytes were taken, more is needed;
 * what was not taken is part of a header (under WS_HEADER_MAX bytes) and must come again with what follows it.
 * BAD: *code is what to close with; the reader stays broken. After a close frame every call is BAD. */
enum ws_result ws_read(struct ws_reader *r, struct span in, size_t *used, struct ws_message *m,
                       uint16_t *code) MUSTCHECK;
/* One unfragmented frame: text, binary, ping or pong. mask: 4 random bytes towards a server, NULL towards a client.
 * -1: out is at its cap, or data is longer than a ping can be. */
int ws_write(struct dynbuf *out, enum ws_op op, struct span data, const uint8_t *mask) MUSTCHECK;
/* A close frame; the reason is cut to what fits, on a UTF-8 boundary. Code 0 says nothing. -1 also for a code that
 * may not be sent. */
int ws_write_close(struct dynbuf *out, uint16_t code, struct span reason, const uint8_t *mask) MUSTCHECK;
/* Of a frame whose n bytes follow, masked with `mask` if it is not NULL; how many bytes it has. last: no other frame
 * of its message comes; WS_NONE goes on with the last one's. */
size_t ws_frame_header(uint8_t out[WS_HEADER_MAX], enum ws_op op, bool last, uint64_t n, const uint8_t *mask);
/* What a server answers to a key is websocket_accept (common/id.h). */

#endif
