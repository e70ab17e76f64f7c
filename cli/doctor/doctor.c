/* countersign doctor: on the gateway's host, what it needs and whether it has it; --from-sandbox: from_sandbox.c */
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "cli/doctor/findings.h"
#include "common/time/clock.h"
#include "cli/doctor/probe.h"
#include "sandbox-shim/plan/limits.h"
#include "sandbox-shim/run/network.h"

enum { DIRECT_MAX = 8, SKEW_MS = 60 * 1000, SOON_DAYS = 30, DIAL_MS = 3000, SOURCE_NAME_MAX = 160 };

struct doctor {
    struct findings f;
    struct gateway_call g;
    char dir[PATH_MAX], proc[32]; /* proc: of the gateway, where it runs; else ours */
};

/* --- files ---------------------------------------------------------------- */

static void check_state(struct doctor *d)
{
    struct stat st;

    if (stat(d->dir, &st) != 0 && errno == ENOENT)
        finding(&d->f, FINDING_NOTE, "state", NULL, NULL, "%s is not there yet; `countersign up` makes it", d->dir);
    else if (stat(d->dir, &st) != 0)
        finding(&d->f, FINDING_BAD, "state", "what the gateway knows lies there", "run this as the gateway's owner",
                "%s: %s", d->dir, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        finding(&d->f, FINDING_BAD, "state", "it must be a directory", "move it away", "%s is not a directory",
                d->dir);
    else if (st.st_mode & 0022)
        finding(&d->f, FINDING_BAD, "state", "whoever writes there is the gateway", "chmod go-w it",
                "%s can be written by others", d->dir);
    else
        finding(&d->f, FINDING_OK, "state", NULL, NULL, "%s", d->dir);
}

/* Who keeps a copy of the state directory should know what it opens. */
static void check_key(struct doctor *d)
{
    char sealed[PATH_MAX + 16], key[PATH_MAX + 24];

    (void)snprintf(sealed, sizeof(sealed), "%s/keeper/ca.key", d->dir);
    (void)snprintf(key, sizeof(key), "%s/keeper/master.key", d->dir);
    if (access(sealed, F_OK) != 0)
        return; /* nothing is sealed yet, or not for us to see */
    bool beside = access(key, F_OK) == 0;
    finding(&d->f, FINDING_OK, "key", NULL, NULL, "%s",
            beside ? "the master key lies in the state directory: whoever has a copy of that can open what it seals "
                     "(master_key: in countersign.yaml keeps it elsewhere)"
                   : "the master key is kept outside the state directory");
}

static X509 *certificate(struct doctor *d, char path[PATH_MAX])
{
    X509 *cert = NULL;
    FILE *f = NULL;

    if (snprintf(path, PATH_MAX, "%s/ca.crt", d->dir) < PATH_MAX)
        f = fopen(path, "re");
    if (f) {
        cert = PEM_read_X509(f, NULL, NULL, NULL);
        (void)fclose(f);
    }
    return cert;
}

/* ca.crt against the clock: X509_cmp_time gives -1 when the time lies before now. */
static void check_dates(struct doctor *d, const X509 *ca)
{
    time_t soon = time(NULL) + (time_t)SOON_DAYS * 86400;

    if (X509_cmp_current_time(X509_get0_notBefore(ca)) > 0)
        finding(&d->f, FINDING_BAD, "clock", "no certificate of ours is valid yet, so no program trusts the gateway",
                "set this machine's clock", "the clock stands before the day the CA was made");
    else if (X509_cmp_current_time(X509_get0_notAfter(ca)) < 0)
        finding(&d->f, FINDING_BAD, "ca", "no program trusts the gateway any more",
                "check the clock first; if it is right, move keeper/ca.crt and keeper/ca.key of the state directory "
                "away, "
                "start the gateway again, and give the sandboxes its new ca.crt",
                "the CA's certificate is no longer valid, by this machine's clock");
    else if (X509_cmp_time(X509_get0_notAfter(ca), &soon) < 0)
        finding(&d->f, FINDING_NOTE, "ca", NULL, NULL, "the CA's certificate ends within %d days", SOON_DAYS);
    else
        finding(&d->f, FINDING_OK, "clock", NULL, NULL, "within the days for which the CA is valid");
}

/* The other two files are made of the first: do they hold it? */
static void check_ca(struct doctor *d)
{
    char path[PATH_MAX], other[PATH_MAX + 16];
    struct dynbuf ca, bundle;
    X509 *cert = certificate(d, path);

    if (!cert && access(path, F_OK) != 0 && errno == ENOENT) {
        finding(&d->f, FINDING_NOTE, "ca", NULL, NULL, "%s is not made yet", path);
        return;
    }
    if (!cert || doctor_file(path, &ca) != 0) {
        finding(&d->f, FINDING_BAD, "ca", "sandboxes are given this file to trust",
                "start the gateway again: it "
                "writes it anew",
                "%s is not a certificate, or cannot be read", path);
        X509_free(cert);
        return;
    }
    check_dates(d, cert);
    X509_free(cert);
    (void)snprintf(other, sizeof(other), "%s/bundle.crt", d->dir);
    if (doctor_file(other, &bundle) != 0)
        bundle.n = 0;
    if (span_find(dynbuf_span(&bundle), span_trim(dynbuf_span(&ca))) == bundle.n)
        finding(&d->f, FINDING_BAD, "ca", "programs that trust the bundle do not trust the gateway",
                "start the gateway again: it writes it anew", "%s does not hold the certificate of ca.crt", other);
    else if (bundle.n < 2 * ca.n)
        finding(&d->f, FINDING_BAD, "ca", "a variable that names it takes all other roots away",
                "install ca-certificates and start the gateway again", "%s holds no system roots", other);
    else
        finding(&d->f, FINDING_OK, "ca", NULL, NULL, "%s and the system's roots in %s", path, other);
    dynbuf_free(&ca);
    if (bundle.p)
        dynbuf_free(&bundle);
    (void)snprintf(other, sizeof(other), "%s/truststore.p12", d->dir);
    if (access(other, R_OK) != 0)
        finding(&d->f, FINDING_BAD, "ca", "Java programs trust by it", "start the gateway again: it writes it anew",
                "%s: %s", other, strerror(errno));
}

/* --- the gateway ---------------------------------------------------------- */

static int get(struct doctor *d, const char *path, struct err *e)
{
    dynbuf_free(&d->g.answer);
    arena_free(&d->g.arena);
    d->g.tree = NULL;
    if (api_call(d->g.sock, "GET", path, SPAN_NONE, &d->g.status, &d->g.answer, e) != 0)
        return -1;
    if (d->g.status != 200)
        return api_explain(d->g.status, dynbuf_span(&d->g.answer), e);
    d->g.tree = json_parse(dynbuf_span(&d->g.answer), &d->g.arena);
    return d->g.tree ? 0 : err_set(e, "its answer is not understood");
}

static void check_roles(struct doctor *d)
{
    const struct json *roles = json_get(d->g.tree, SPAN("roles"));
    bool good = true;

    for (const struct json *r = roles ? roles->child : NULL; r; r = r->next) {
        const struct json *ready = json_get(r, SPAN("ready"));
        struct span name = member_text(r, "role");
        if (member_u64(r, "pid")) /* any of them is where their parent is */
            (void)snprintf(d->proc, sizeof(d->proc), "/proc/%llu", (unsigned long long)member_u64(r, "pid"));
        if (ready && ready->truth)
            continue;
        good = false;
        finding(&d->f, FINDING_BAD, "gateway", "what it does is refused until it is back",
                "the gateway's log says why it does not start", "the process %.*s is not ready", SPAN_FMT(name));
    }
    if (good)
        finding(&d->f, FINDING_OK, "gateway", NULL, NULL, "runs, every process of it");
    if (span_eq(member_text(d->g.tree, "mode"), SPAN("shadow")))
        finding(&d->f, FINDING_NOTE, "gateway", NULL, NULL, "shadow mode: nothing is held or denied");
    int64_t skew = (int64_t)clock_ms(CLOCK_REALTIME) - (int64_t)member_u64(d->g.tree, "time_ms");
    if (skew > SKEW_MS || skew < -SKEW_MS)
        finding(&d->f, FINDING_BAD, "clock", "certificates are judged by it",
                "set the clock; a gateway in a container of its own has the host's", "%lld seconds off the gateway's",
                (long long)((skew < 0 ? -skew : skew) / 1000));
}

/* A policy file that is changed, and nothing else changes. Of the status that was asked for. */
static void check_pin(struct doctor *d)
{
    const struct json *pinned = json_get(d->g.tree, SPAN("pinned"));
    struct span hex = span_first(member_text(pinned, "digest"), 12), by = member_text(pinned, "by");

    if (pinned)
        finding(&d->f, FINDING_NOTE, "gateway", NULL, NULL,
                "the policy is pinned to version %.*s by a rollback of %.*s: the policy files are not in force until "
                "`countersign policy rollback --end`",
                SPAN_FMT(hex), SPAN_FMT(by));
}

/* What somebody wrote and thinks to be in force. Of the status that was asked for. */
static void check_files(struct doctor *d)
{
    const struct json *files = json_get(d->g.tree, SPAN("files"));
    struct span restart = member_text(d->g.tree, "needs_restart");

    for (const struct json *f = files ? files->child : NULL; f; f = f->next) {
        struct span name = member_text(f, "name"), state = member_text(f, "state"), why = member_text(f, "why");
        if (span_eq(state, SPAN("changed")))
            finding(&d->f, FINDING_BAD, "policy", "the gateway goes by what it read before",
                    "`countersign policy check` it, then `countersign reload`",
                    "%.*s was changed and is not in force", SPAN_FMT(name));
        else if (!span_eq(state, SPAN("same")))
            finding(&d->f, FINDING_BAD, "policy", "the next reload or restart is refused", "put it back, or mend it",
                    "%.*s is in force and cannot be read any more: %.*s", SPAN_FMT(name), SPAN_FMT(why));
    }
    if (restart.n)
        finding(&d->f, FINDING_BAD, "gateway", "a reload does not bring that into force",
                "end the gateway and start it again", "these keys of the configuration were changed: %.*s",
                SPAN_FMT(restart));
}

/* What a person would have to look at. Of the status that was asked for. */
static void check_waiting(struct doctor *d)
{
    uint64_t n = member_u64(d->g.tree, "waiting"), now_ms = member_u64(d->g.tree, "time_ms");
    char age[32];

    if (n)
        finding(&d->f, FINDING_NOTE, "gateway", NULL, NULL,
                "%llu request%s for approval, the oldest for %s: `countersign approvals list`", (unsigned long long)n,
                n == 1 ? " waits" : "s wait", age_text(now_ms, member_u64(d->g.tree, "oldest_ms"), age));
}

/* A gateway runs without a policy too, to read what was decided. Of the status that was asked for. */
static void check_rules(struct doctor *d)
{
    if (member_text(d->g.tree, "rules").n && member_u64(d->g.tree, "rules") == 0)
        finding(&d->f, FINDING_NOTE, "policy", NULL, NULL,
                "no policy with rules is in force, so every request is refused: `countersign up --policy FILE`");
}

static void check_policy(struct doctor *d)
{
    char dir[PATH_MAX + 16];
    struct err e;

    if (get(d, "/api/v1/policy/versions", &e) != 0 || member_text(d->g.tree, "current").n == 0)
        return;
    (void)snprintf(dir, sizeof(dir), "%s/policies", d->dir);
    doctor_policy(&d->f, dir, member_text(d->g.tree, "current"));
}

/* Writes that are refused look like a fault to who does not know of it. */
static void check_freeze(struct doctor *d)
{
    struct err e;

    if (get(d, "/api/v1/freeze", &e) != 0)
        return;
    const struct json *frozen = json_get(d->g.tree, SPAN("frozen"));
    struct span by = member_text(d->g.tree, "by");
    if (frozen && frozen->truth)
        finding(&d->f, FINDING_NOTE, "gateway", NULL, NULL,
                "writes are frozen by %.*s: every one is refused until `countersign thaw`", SPAN_FMT(by));
}

/* Who relies on being told should know that they were not. */
static void check_told(struct doctor *d)
{
    struct err e;

    if (get(d, "/api/v1/notify", &e) != 0)
        return;
    const struct json *rows = json_get(d->g.tree, SPAN("targets"));
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        struct span name = member_text(r, "name"), words = member_text(r, "words");
        uint64_t lost = member_u64(r, "given_up");
        if (lost)
            finding(&d->f, FINDING_BAD, "notify", "people are not told of what waits for them",
                    "mend it, and try it with `countersign notify test`",
                    "%.*s was not told %llu times in a week: %.*s", SPAN_FMT(name), (unsigned long long)lost,
                    SPAN_FMT(words));
        else
            finding(&d->f, FINDING_OK, "notify", NULL, NULL, "%.*s: %llu wait to be told", SPAN_FMT(name),
                    (unsigned long long)member_u64(r, "waiting"));
    }
}

/* One that was refused a value, or never had one: its source is asked again, and says which step fails. */
static void check_source(struct doctor *d, struct span name)
{
    struct dynbuf answer;
    struct arena a;
    struct err e = {"the keeper's answer cannot be read"};
    char own[SOURCE_NAME_MAX];

    arena_init(&a, 1024 * 1024);
    (void)snprintf(own, sizeof(own), "credential %.*s: ", SPAN_FMT(name)); /* some words begin with it */
    const struct json *j =
        verb_check_source(d->dir, name, &answer, &e) == 0 ? json_parse(dynbuf_span(&answer), &a) : NULL;
    const struct json *ok = json_get(j, SPAN("ok"));
    struct span why = j ? json_text(j, SPAN("why")) : span_str(e.text);
    if (span_starts(why, span_str(own)))
        why = span_from(why, strlen(own));
    if (ok == NULL || ok->type != JSON_BOOL || !ok->truth)
        finding(&d->f, FINDING_BAD, "secrets", "requests that a rule would give it to are refused",
                "countersign secret set fills a store; countersign secret check asks its source again:",
                "the policy names the credential %.*s, and it has no value: %.*s", SPAN_FMT(name), SPAN_FMT(why));
    arena_free(&a);
    dynbuf_free(&answer);
}

static void check_secrets(struct doctor *d)
{
    const struct json *list;
    struct err e;
    unsigned n = 0;

    if (get(d, "/api/v1/credentials", &e) != 0) {
        finding(&d->f, FINDING_BAD, "secrets", "so it cannot be told what is missing", "see the gateway's log", "%s",
                e.text);
        return;
    }
    list = json_get(d->g.tree, SPAN("credentials"));
    for (const struct json *c = list ? list->child : NULL; c; c = c->next) {
        const struct json *present = json_get(c, SPAN("present"));
        struct span name = member_text(c, "name");
        n++;
        if (!present || !present->truth)
            check_source(d, name);
    }
    finding(&d->f, FINDING_OK, "secrets", NULL, NULL, "%u credential%s named by the policy", n,
            n == 1 ? " is" : "s are");
}

static void check_listener(struct doctor *d, const char *key)
{
    struct env_url u;
    struct span where = member_text(d->g.tree, key);
    uint64_t port;
    struct err e;
    int fd;

    if (where.n == 0)
        return;
    if (env_url_split(where, &u) != 0 || span_u64(u.port, 65535, &port) != 0)
        return;
    enum probe_result rc = probe_dial(u.host, (uint16_t)port, DIAL_MS, &fd, &e);
    if (rc == PROBE_OK) {
        close(fd);
        finding(&d->f, FINDING_OK, "listener", NULL, NULL, "%.*s answers", SPAN_FMT(where));
    } else if (rc == PROBE_NAME) {
        finding(&d->f, FINDING_NOTE, "listener", NULL, NULL, "%.*s is a name that only sandboxes know",
                SPAN_FMT(where));
    } else {
        finding(&d->f, FINDING_BAD, "listener", "this is the address that sandboxes are told",
                "see `listeners` in countersign.yaml, and `advertise` of this one", "%.*s does not answer: %s",
                SPAN_FMT(where), e.text);
    }
}

static void check_gateway(struct doctor *d)
{
    struct err e;
    int running = api_running(d->g.sock, &e);

    if (running <= 0) {
        finding(&d->f, running == 0 ? FINDING_NOTE : FINDING_BAD, "gateway",
                running ? "so nothing can be asked" : NULL, running ? "run this as the gateway's owner" : NULL, "%s",
                running ? e.text : "does not run (start it with `countersign up`)");
        return;
    }
    if (get(d, "/api/v1/status", &e) != 0) {
        finding(&d->f, FINDING_BAD, "gateway", "its desk is there, the rest may not be", "see the gateway's log",
                "%s", e.text);
        return;
    }
    check_roles(d);
    check_pin(d);
    if (!json_get(d->g.tree, SPAN("pinned")))
        check_files(d);
    check_waiting(d);
    doctor_clients(&d->f, d->g.tree);
    check_rules(d);
    check_policy(d);
    check_freeze(d);
    check_told(d);
    check_secrets(d);
    if (get(d, "/api/v1/sandboxes", &e) == 0) {
        check_listener(d, "proxy");
        check_listener(d, "socks");
    }
}

/* --- the machine ---------------------------------------------------------- */

static void check_names(struct doctor *d)
{
    struct addrinfo *list = NULL;
    int rc = getaddrinfo("localhost", NULL, NULL, &list);

    if (rc == 0)
        finding(&d->f, FINDING_OK, "dns", NULL, NULL, "localhost has an address");
    else
        finding(&d->f, FINDING_BAD, "dns", "the approval page is found by this name", "repair /etc/hosts",
                "localhost has no address: %s", gai_strerror(rc));
    if (list)
        freeaddrinfo(list);
}

/* Without it programs that know of no proxy do not get out of `run`: no fault, but what somebody wonders about. */
static void check_capture(struct doctor *d)
{
    struct err e;
    const char *nft = network_nft(&e);

    if (nft && network_try(nft, &e) == 0)
        finding(&d->f, FINDING_OK, "run", NULL, NULL, "connections of its sandboxes can be captured");
    else
        finding(&d->f, FINDING_NOTE, "run", NULL, NULL,
                "connections of its sandboxes cannot be captured, programs must follow the proxy variables: %s",
                e.text);
}

static void check_run(struct doctor *d)
{
    const char *bwrap = "/usr/bin/bwrap";
    int status = -1;

    if (access(bwrap, X_OK) != 0)
        finding(&d->f, FINDING_BAD, "run", "`countersign run` builds its sandboxes with it",
                "install the package bubblewrap", "%s is missing", bwrap);
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        finding(&d->f, FINDING_OK, "run", NULL, NULL, "user namespaces can be made");
    else
        finding(&d->f, FINDING_BAD, "run", "`countersign run` needs them, and so do programs of sources with hosts:",
                "allow them: kernel.unprivileged_userns_clone, AppArmor, or the container's seccomp profile",
                "user namespaces cannot be made");
    check_capture(d);
}

/* What `sandbox start` would say: no fault, for `approximate` is the default of an ordinary user's gateway. */
static void check_limits(struct doctor *d)
{
    char path[64], held[128];

    (void)snprintf(path, sizeof(path), "%s/mountinfo", d->proc);
    if (limits_here(access(path, R_OK) == 0 ? d->proc : "/proc/self", held, sizeof(held)))
        finding(&d->f, FINDING_OK, "start", NULL, NULL, "limits: strict holds what sandboxes use: %s", held);
    else
        finding(&d->f, FINDING_NOTE, "start", NULL, NULL,
                "limits: strict starts no sandbox here, for no cgroup can be made that holds all of it (%s); "
                "approximate holds the memory of each process, and the number of all of their user, by rlimits, and "
                "the CPU by nothing",
                held);
}

int doctor_main(const struct cli_call *c)
{
    static const char *const places[] = {"1.1.1.1:443", "[2606:4700:4700::1111]:443", NULL};
    const char *direct[DIRECT_MAX + 1];
    size_t ndirect = cli_values(c, "direct", direct, DIRECT_MAX + 1);
    struct doctor d = {.proc = "/proc/self"};
    struct err e;

    if (ndirect > DIRECT_MAX)
        return cli_complain(c->verb, "--direct is given more than %d times", DIRECT_MAX);
    if (ndirect && !cli_flag(c, "from-sandbox"))
        return cli_complain(c->verb, "--direct needs --from-sandbox");
    direct[ndirect] = NULL;
    findings_begin(&d.f, c->json);
    if (cli_flag(c, "from-sandbox")) {
        doctor_sandbox(&d.f, ndirect ? direct : places);
        return findings_end(&d.f);
    }
    if (api_state_dir(c->state_dir, d.dir, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    int rc = verb_begin(&d.g, c);
    if (rc == CLI_OK) {
        check_state(&d);
        check_key(&d);
        check_ca(&d);
        check_gateway(&d);
        check_names(&d);
        check_run(&d);
        check_limits(&d);
        rc = findings_end(&d.f);
    }
    verb_end(&d.g);
    return rc;
}
