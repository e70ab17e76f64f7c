#include "tests/unit/keeper/keeper_world.h"

static const char policy_text[] =
    "version: 1\n"
    "credentials:\n"
    "  env:\n"
    "    source: { env: KEEPER_TEST_TOKEN }\n"
    "    inject: { header: Authorization, format: \"Bearer {}\" }\n"
    "    only: [{ host: a.example }]\n"
    "  store:\n"
    "    source: { store: kept }\n"
    "    inject: { header: Authorization, format: \"Bearer {}\" }\n"
    "    only: [{ host: a.example }]\n"
    "  asked:\n"
    "    source: { exec: { argv: [/bin/op] } }\n"
    "    inject: { header: Authorization, format: \"Bearer {}\" }\n"
    "    only: [{ host: a.example }]\n"
    "gates:\n"
    "  scan: { program: [/bin/scan, --strict], timeout: 2s }\n"
    "rules:\n"
    "  - { id: a, match: { host: a.example, effect: read }, decide: allow, use: env }\n";

struct loop *loop;
struct chan *parent, *judge, *carrier, *ledger, *fetcher;
struct got got[64];
size_t ngot, wanted;
char folder[64], sock[96];
int child, dir = -1;
bool ended;
const char *const *keeper_told;
size_t nkeeper_told;
struct digest place; /* what the policy binds to a.example */
struct digest scan;  /* its gate */

uint64_t watched; /* an exchange */
bool watched_served;

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    watched_served |= f->type == M_CREDENTIAL && f->id == watched;
    struct got *g = &got[ngot++ % 64];
    *g = (struct got){.type = f->type, .id = f->id, .n = f->payload.n};
    assert_true(g->n <= sizeof(g->payload));
    if (g->n)
        memcpy(g->payload, f->payload.p, g->n);
    if (ngot >= wanted)
        loop_stop(loop);
}

static void on_gone(void *arg, struct chan *c)
{
    ended = true;
    loop_stop(loop);
}

static const struct chan_ops ops = {on_frame, on_gone};

static void too_late(void *arg)
{
    fail_msg("%zu of %zu messages came", ngot, wanted);
}

/* Until n more came; they stand in got from 0. */
void await(size_t n)
{
    struct timer *t = timer_new(loop, too_late, NULL);
    ngot = 0;
    wanted = n;
    timer_set(t, 300000);
    assert_int_equal(loop_run(loop), 0);
    timer_free(&t);
    assert_false(ended);
    assert_int_equal(ngot, n);
}

static void stop_now(void *arg)
{
    loop_stop(loop);
}

/* What was said is written, and read by the other side before what is asked elsewhere. */
void settle(void)
{
    struct timer *t = timer_new(loop, stop_now, NULL);
    wanted = 64;
    timer_set(t, 100);
    assert_int_equal(loop_run(loop), 0);
    timer_free(&t);
}

struct span payload(size_t i)
{
    return span_of(got[i].payload, got[i].n);
}

struct chan *introduce(enum role_id role)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    struct dynbuf *b = chan_begin(parent, M_PEER, 0);
    msg_put_u8(b, (uint8_t)role);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    msg_put_u64(b, 1);
    assert_int_equal(chan_commit_fd(parent, fd[0]), 0);
    close(fd[0]);
    return chan_new(loop, fd[1], &ops, NULL);
}

void spawn(void)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    child = fork();
    if (child == 0) {
        setenv("KEEPER_TEST_TOKEN", "env-canary-0123", 1);
        dup2(fd[1], 3);
        close_range(4, ~0u, 0);
        execl("./countersign-keeper", "countersign-keeper", NULL);
        _exit(127);
    }
    close(fd[1]);
    fcntl(fd[0], F_SETFD, FD_CLOEXEC);
    parent = chan_new(loop, fd[0], &ops, NULL);
    struct dynbuf *b = chan_begin(parent, M_CONFIG, 0);
    char uid[16];
    snprintf(uid, sizeof(uid), "%u", geteuid());
    msg_put_u32(b, MSG_VERSION);
    msg_put_u16(b, (uint16_t)(1 + nkeeper_told / 2));
    msg_put_span(b, SPAN("owner_uid"));
    msg_put_span(b, span_str(uid));
    for (size_t i = 0; i < nkeeper_told; i++)
        msg_put_span(b, span_str(keeper_told[i]));
    assert_int_equal(chan_commit_fd(parent, dir), 0);
}

/* what: more rules, another program of the gate. */
void send_image_of(const char *rules, const char *program)
{
    char text[2048];
    struct kit k;
    struct digest of;
    const char *at = strstr(policy_text, "/bin/scan");
    snprintf(text, sizeof(text), "%.*s%s%s%s", (int)(at - policy_text), policy_text, program, at + 9, rules);
    if (!kit_load(&k, text, NULL))
        fail_msg("%s", k.e.text);
    memcpy(of.b, policy_digest(k.p).p, sizeof(of));
    struct gate g;
    assert_true(policy_gate(k.p, 0, &g));
    assert_int_equal(identity_of_gate(k.p, &g, &scan), 0);
    assert_int_equal(identity_of_place(k.p, SPAN("https"), SPAN("a.example"), 443, &place), 0);
    int fd = memfd_create("image", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    assert_int_equal(write(fd, k.image, k.image_n), (ssize_t)k.image_n);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    struct dynbuf *b = chan_begin(parent, M_IMAGE, 0);
    msg_put_digest(b, &of);
    assert_int_equal(chan_commit_fd(parent, fd), 0);
    close(fd);
    kit_free(&k);
}

void send_image(void)
{
    send_image_of("", "/bin/scan");
}

void listen_for_secrets(void)
{
    int fd = listen_unix(sock, 0600);
    assert_true(fd >= 0);
    struct dynbuf *b = chan_begin(parent, M_LISTEN, 0);
    msg_put_u8(b, 5);
    msg_put_span(b, SPAN("keeper.sock"));
    assert_int_equal(chan_commit_fd(parent, fd), 0);
    close(fd);
    settle();
}

int setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/cs-keeper-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(sock, sizeof(sock), "%s.sock", folder);
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ended = false;
    loop = loop_new();
    spawn();
    await(2);
    assert_int_equal(got[0].type, M_CA);
    assert_int_equal(got[1].type, M_READY);
    send_image();
    await(1);
    assert_int_equal(got[0].type, M_SECRETS);
    judge = introduce(ROLE_JUDGE);
    carrier = introduce(ROLE_CARRIER);
    ledger = introduce(ROLE_LEDGER);
    await(1);
    assert_int_equal(got[0].type, M_DATA_KEY);
    listen_for_secrets();
    return 0;
}

int teardown(void **state)
{
    struct chan **all[] = {&parent, &judge, &carrier, &ledger, &fetcher};
    DIR *d = opendir(folder);
    for (int i = 0; i < 5; i++)
        chan_free(all[i]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    loop_free(&loop);
    for (struct dirent *f; d && (f = readdir(d)) != NULL;)
        if (f->d_name[0] != '.')
            (void)unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
    close(dir);
    (void)unlink(sock);
    return rmdir(folder);
}

struct span asked_path = SPAN("/x");

void ask_release(struct chan *c, uint64_t xid, struct span credential, bool held, struct span signature)
{
    struct digest d = {{0}};
    memset(&d, held ? 7 : 0, sizeof(d));
    struct dynbuf *b = chan_begin(c, M_RELEASE, xid);
    msg_put_span(b, credential);
    msg_put_span(b, SPAN("https"));
    msg_put_span(b, SPAN("a.example"));
    msg_put_u16(b, 443);
    msg_put_span(b, asked_path);
    msg_put_u8(b, held);
    msg_put_digest(b, &d);
    msg_put_span(b, signature);
    msg_put_digest(b, &place);
    msg_put_u64(b, 0);
    msg_put_id(b, &(struct id){{0}});
    msg_put_u8(b, false);
    assert_int_equal(chan_commit(c), 0);
}

bool says(size_t i, struct span what)
{
    return span_find(payload(i), what) < got[i].n;
}

void not_begun(uint64_t id, struct span why)
{
    struct dynbuf *b = chan_begin(fetcher, M_FETCHED, id);
    wire_put_fetched(b, &(struct wire_fetched){.busy = true, .why = why});
    assert_int_equal(chan_commit(fetcher), 0);
}

void fetched(uint64_t id, struct span value, struct span why)
{
    struct dynbuf *b = chan_begin(fetcher, M_FETCHED, id);
    wire_put_fetched(b, &(struct wire_fetched){.ok = value.n > 0, .value = value, .why = why});
    assert_int_equal(chan_commit(fetcher), 0);
}
