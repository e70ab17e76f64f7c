/* Frames as a front that was taken over would send them, against a policy that holds every write, allows one read
 * path and one WebSocket over which text may be sent: the judge refuses them or ends the channel, and nothing else
 * than that is ever sent. Input: a row of { u8 type, u8 exchange, u16 length, payload }. */
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/http/ws.h"
#include "common/log.h"
#include "proxy/canonical.h"
#include "proxy/judge/judge.h"
#include "proxy/wire_ticket.h"
#include "tests/fuzz/fuzz.h"

enum { INSTANCE = 7 };

static struct dynbuf out;
static uint16_t out_type;
static enum role_id out_to;
static uint64_t now = 1;

int frame_take_fd(struct frame *f, unsigned i)
{
    int fd = i < f->nfds ? f->fd[i] : -1;
    if (fd >= 0)
        f->fd[i] = -1;
    return fd;
}

static struct dynbuf *begin(void *arg, enum role_id to, uint64_t instance, uint16_t type, uint64_t id)
{
    dynbuf_free(&out);
    dynbuf_init(&out, 1 << 20);
    out_type = type;
    out_to = to;
    return &out;
}

static int commit(void *arg, enum role_id to, uint64_t instance, int fd)
{
    MUST_HOLD(to == out_to && dynbuf_ok(&out));
    if (out_type == M_FORWARD) {
        struct msg_in m = msg_in(dynbuf_span(&out));
        struct wire_forward f;
        MUST_HOLD(wire_get_forward(&m, &f) == 0 && canonical_request(&f.request) == CANONICAL);
        bool upgrade = f.request.nfields > 0 && span_eq(f.request.field[0].name, SPAN("Upgrade"));
        MUST_HOLD(f.repeatable && span_starts(f.request.path, upgrade ? SPAN("/ws") : SPAN("/free")));
    }
    if (out_to == ROLE_CARRIER && out_type == M_MESSAGE)
        MUST_HOLD(out.p[0] == WS_TEXT || out.p[0] >= WS_CLOSE);
    MUST_HOLD(out_type != M_RELEASE && out_type != M_CLAIM);
    return 0;
}

static uint64_t tell(void *arg)
{
    return now++;
}

static void wake(void *arg, uint64_t ms)
{
}

static void hold_back(void *arg, uint64_t instance, bool on)
{
}

static void policy(struct judge *j)
{
    static const char text[] =
        "allow read GET /free rule=r\nhold write POST / rule=w\nallow read GET /ws rule=s ws send=1\n";
    struct digest d = {{1}};
    int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct frame f = {.type = M_IMAGE, .payload = span_of(d.b, DIGEST_BYTES), .fd = {fd}, .nfds = 1};
    MUST_HOLD(write(fd, d.b, DIGEST_BYTES) == DIGEST_BYTES);
    MUST_HOLD(write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
    MUST_HOLD(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
    MUST_HOLD(judge_frame(j, ROLE_PARENT, 0, &f) == 0);
}

static struct judge *start(void)
{
    static const struct judge_ports ports = {NULL, begin, commit, tell, tell, wake, NULL, tell, hold_back};
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses")};
    struct judge *j = judge_new(&ports);
    struct dynbuf b;
    log_init("fuzz", LOG_ERROR);
    MUST_HOLD(j != NULL);
    for (enum role_id r = ROLE_LOBBY; r < ROLE_COUNT; r++)
        judge_peer(j, r, r == ROLE_FRONT ? INSTANCE : 0, SPAN("sb"));
    dynbuf_init(&b, 4096);
    wire_put_sandbox(&b, &s);
    msg_put_u8(&b, 0);
    struct frame f = {.type = M_SANDBOX, .payload = dynbuf_span(&b)};
    MUST_HOLD(judge_frame(j, ROLE_LEDGER, 0, &f) == 0);
    dynbuf_free(&b);
    f = (struct frame){.type = M_FREEZE, .payload = {(const uint8_t *)"", 1}};
    MUST_HOLD(judge_frame(j, ROLE_LEDGER, 0, &f) == 0);
    policy(j);
    return j;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct judge *j = start();
    struct span rest = span_of(data, n);
    while (rest.n >= 4) {
        struct frame f = {.type = rest.p[0], .id = (uint64_t)INSTANCE << 40 | rest.p[1]};
        size_t len = (size_t)rest.p[2] << 8 | rest.p[3];
        if (f.type == M_FRONT_KEY)
            f.id = 0;
        rest = span_from(rest, 4);
        f.payload = span_first(rest, len);
        uint8_t *own = fuzz_copy(f.payload);
        size_t taken = f.payload.n;
        f.payload.p = own;
        int rc = judge_frame(j, ROLE_FRONT, INSTANCE, &f);
        free(own);
        rest = span_from(rest, taken);
        if (rc != 0)
            break;
    }
    judge_gone(j, ROLE_FRONT, INSTANCE);
    judge_free(&j);
    dynbuf_free(&out);
    return 0;
}
