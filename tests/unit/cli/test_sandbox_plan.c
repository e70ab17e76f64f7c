/* The plan of a sandbox, as bubblewrap's words: what is in it with a gateway and without. Attacks G3, G6, G14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sandbox-shim/plan/plan.h"

/* How often this word, followed by that one (NULL: whatever). */
static unsigned times(const struct plan *p, const char *word, const char *next)
{
    unsigned n = 0;
    for (size_t at = 0; at < p->args.n;) {
        const char *w = (const char *)p->args.p + at;
        at += strlen(w) + 1;
        n += strcmp(w, word) == 0 && (!next || (at < p->args.n && strcmp((const char *)p->args.p + at, next) == 0));
    }
    return n;
}

static void without_a_gateway_nothing_of_one_is_there(void **state)
{
    char aws[] = "AWS_SECRET_ACCESS_KEY=x", proxy[] = "HTTP_PROXY=http://x", lang[] = "LANG=C.UTF-8";
    char *const caller[] = {aws, proxy, lang, NULL};
    struct plan p = {
        .name = "box", .shim = open("/dev/null", O_PATH | O_CLOEXEC), .disk = 512 << 20, .scratch = 64 << 20};
    struct err e;

    assert_int_equal(plan_build(&p, caller, &e), 0);
    assert_int_equal(times(&p, "--ro-bind-fd", NULL), 1);
    assert_int_equal(times(&p, INSIDE_SHIM, NULL), 1);
    for (const char *const *w =
             (const char *const[]){INSIDE_SOCKET, INSIDE_CA, INSIDE_BUNDLE, INSIDE_TRUSTSTORE, "HTTP_PROXY",
                                   "https_proxy", "SSL_CERT_FILE", "AWS_SECRET_ACCESS_KEY", NULL};
         *w; w++)
        assert_int_equal(times(&p, *w, NULL), 0);
    assert_int_equal(times(&p, "COUNTERSIGN_SANDBOX", NULL), 0); /* it is told its name when it is asked for */
    assert_int_equal(times(&p, "--tmpfs", INSIDE_WORKSPACE), 1);
    assert_int_equal(times(&p, "--size", "536870912"), 1);
    assert_int_equal(times(&p, "--size", "67108864"), 5); /* /tmp, /var/tmp, /dev/shm, /run, /home */
    assert_int_equal(times(&p, "--tmpfs", NULL), 6);      /* none of which has no size */
    assert_int_equal(times(&p, "--remount-ro", "/dev"), 1);
    assert_int_equal(times(&p, "--unshare-net", NULL), 1);
    assert_int_equal(times(&p, "--seccomp", NULL), 1);
    plan_free(&p);
}

static void with_one_it_is_all_there(void **state)
{
    char *const none[] = {NULL};
    struct plan p = {.name = "box",
                     .shim = open("/dev/null", O_PATH | O_CLOEXEC),
                     .listener = "/s/run/sb.sock",
                     .ca = "/s/ca.crt",
                     .bundle = "/s/bundle.crt",
                     .truststore = "/s/t.p12",
                     .variables = true,
                     .disk = 1 << 20};
    struct err e;

    assert_int_equal(plan_build(&p, none, &e), 0);
    assert_int_equal(times(&p, "/s/run/sb.sock", INSIDE_SOCKET), 1);
    assert_int_equal(times(&p, "/s/bundle.crt", INSIDE_BUNDLE), 1);
    assert_int_equal(times(&p, "HTTP_PROXY", "http://" INSIDE_PROXY), 1);
    plan_free(&p);
}

/* The descriptor of the file that is put there. */
static int file_at(const struct plan *p, const char *dest)
{
    const char *before = NULL;
    for (size_t at = 0; at < p->args.n;) {
        const char *w = (const char *)p->args.p + at;
        if (strcmp(w, dest) == 0)
            return before ? atoi(before) : -1;
        before = w;
        at += strlen(w) + 1;
    }
    return -1;
}

/* Attack G25: the socket is the first process's alone, and what is to be trusted cannot be found by another name. */
static void a_lane_is_passed_on_and_lies_nowhere(void **state)
{
    char *const none[] = {NULL};
    for (int image = 0; image < 2; image++) {
        int zero = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct plan p = {.name = "box",
                         .shim = open("/dev/null", O_PATH | O_CLOEXEC),
                         .image = image ? open("/", O_PATH | O_CLOEXEC) : 0,
                         .lane = {.listener = open("/dev/null", O_PATH | O_CLOEXEC),
                                  .ca = open("/dev/zero", O_RDONLY | O_CLOEXEC),
                                  .bundle = zero,
                                  .truststore = open("/dev/null", O_RDONLY | O_CLOEXEC)},
                         .variables = true,
                         .disk = 1 << 20};
        struct err e;
        bool passed = false;

        if (!image) { /* of which a policy for Chromium is made */
            close(p.lane.ca);
            p.lane.ca = memfd_create("ca", MFD_CLOEXEC);
            assert_int_equal(write(p.lane.ca, "-----BEGIN CERTIFICATE-----\nQUJD\n", 33), 33);
            assert_int_equal(lseek(p.lane.ca, 0, SEEK_SET), 0);
        }
        assert_int_equal(plan_build(&p, none, &e), 0);
        for (size_t i = 0; i < p.nfds; i++)
            passed |= p.fds[i] == p.lane.listener;
        assert_true(passed);
        assert_int_equal(times(&p, INSIDE_SOCKET, NULL), 0);
        assert_int_equal(file_at(&p, INSIDE_CA), p.lane.ca);
        assert_int_equal(file_at(&p, INSIDE_BUNDLE), p.lane.bundle);
        assert_int_equal(file_at(&p, INSIDE_TRUSTSTORE), p.lane.truststore);
        assert_int_equal(times(&p, INSIDE_BUNDLE, "/etc/ssl/certs/ca-certificates.crt"), !image);
        assert_int_equal(times(&p, "HTTP_PROXY", "http://" INSIDE_LANE), 1);
        if (!image) {
            assert_true(file_at(&p, "/etc/chromium/policies/managed/countersign.json") >= 0);
            assert_int_equal(lseek(p.lane.ca, 0, SEEK_CUR), 0); /* it is still to be read */
        }
        plan_free(&p);
    }
}

/* Chromium is told whom to trust: each certificate, as one line of base64. */
static void a_browser_is_told_whom_to_trust(void **state)
{
    static const char pem[] = "a comment\n-----BEGIN CERTIFICATE-----\nQUJD\nREVG\n-----END CERTIFICATE-----\n"
                              "-----BEGIN CERTIFICATE-----\nR0hJ\n-----END CERTIFICATE-----";
    static const char want[] = "{\"QuicAllowed\":false,\"CACertificates\":[\"QUJDREVG\",\"R0hJ\"]}\n";
    char *const none[] = {NULL};
    char path[] = "/tmp/cs-plan-XXXXXX", got[200] = "";
    int fd = mkstemp(path);
    struct err e;

    assert_int_equal(write(fd, pem, sizeof(pem) - 1), sizeof(pem) - 1);
    struct plan p = {.name = "box",
                     .shim = open("/dev/null", O_PATH | O_CLOEXEC),
                     .listener = "/s/run/sb.sock",
                     .ca = path,
                     .bundle = "/s/bundle.crt",
                     .truststore = "/s/t.p12",
                     .disk = 1 << 20};
    assert_int_equal(plan_build(&p, none, &e), 0);
    int policy = file_at(&p, "/etc/chromium/policies/managed/countersign.json");
    assert_true(policy >= 0);
    assert_int_equal(pread(policy, got, sizeof(got) - 1, 0), sizeof(want) - 1);
    assert_string_equal(got, want);
    assert_int_equal(times(&p, "/etc/chromium.d/countersign", NULL), 1);
    plan_free(&p);
    close(fd);
    unlink(path);
}

/* An image's files are all there is of /usr and /etc, read-only, and none of its own ways leads past ours. */
static void of_an_image_nothing_of_the_machines_is_there(void **state)
{
    char lang[] = "LANG=C.UTF-8";
    char *const caller[] = {lang, NULL};
    struct plan p = {.name = "box",
                     .shim = open("/dev/null", O_PATH | O_CLOEXEC),
                     .image = open("/", O_PATH | O_CLOEXEC),
                     .listener = "/s/run/sb.sock",
                     .ca = "/s/ca.crt",
                     .bundle = "/s/bundle.crt",
                     .truststore = "/s/t.p12",
                     .variables = true,
                     .disk = 512 << 20,
                     .scratch = 64 << 20};
    struct err e;
    int at;

    dynbuf_init(&p.variables_of_image, 256);
    (void)dynbuf_add(&p.variables_of_image, SPAN("PATH=/opt/bin\0A=b=c\0HTTP_PROXY=evil\0"));
    assert_int_equal(plan_build(&p, caller, &e), 0);
    assert_int_equal(times(&p, "--ro-bind-fd", NULL), 2);
    at = file_at(&p, "/");
    assert_int_equal(at, p.image);
    for (const char *const *w =
             (const char *const[]){"/usr", "/bin", "/etc/alternatives", "/etc/chromium.d/countersign", "--file",
                                   "/var/run", "/etc/ssl/certs/ca-certificates.crt", NULL};
         *w; w++)
        assert_int_equal(times(&p, *w, NULL), 0);
    assert_int_equal(times(&p, "--ro-bind-data", NULL), 5); /* passwd, group, hosts, nsswitch.conf, resolv.conf */
    assert_int_equal(times(&p, "--tmpfs", "/countersign"), 1);
    assert_int_equal(times(&p, "--remount-ro", "/countersign"), 1);
    assert_int_equal(times(&p, "--remount-ro", "/"), 1);
    assert_int_equal(times(&p, "/s/bundle.crt", INSIDE_BUNDLE), 1);
    assert_int_equal(times(&p, "PATH", "/opt/bin"), 1);
    assert_int_equal(times(&p, "A", "b=c"), 1);
    const char *last = NULL; /* the gateway's comes after, and counts */
    for (size_t i = 0; i < p.args.n; i += strlen((const char *)p.args.p + i) + 1)
        if (strcmp((const char *)p.args.p + i, "HTTP_PROXY") == 0)
            last = (const char *)p.args.p + i + sizeof("HTTP_PROXY");
    assert_string_equal(last, "http://" INSIDE_PROXY);
    plan_free(&p);
}

/* For bubblewrap a size of 0 is none. */
static void a_workspace_without_a_size_is_refused(void **state)
{
    char *const none[] = {NULL};
    struct plan p = {.name = "box", .shim = open("/dev/null", O_PATH | O_CLOEXEC)};
    struct err e;

    assert_int_equal(plan_build(&p, none, &e), -1);
    plan_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_gateway_nothing_of_one_is_there),
        cmocka_unit_test(with_one_it_is_all_there),
        cmocka_unit_test(a_lane_is_passed_on_and_lies_nowhere),
        cmocka_unit_test(a_browser_is_told_whom_to_trust),
        cmocka_unit_test(of_an_image_nothing_of_the_machines_is_there),
        cmocka_unit_test(a_workspace_without_a_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
