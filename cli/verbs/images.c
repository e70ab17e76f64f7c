/* countersign image import|list|rm: the images of started sandboxes, in the state directory of who owns it; a gateway
 * need not run. An image is read by another program, which is confined (sandbox-shim/images/). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/verb.h"
#include "common/file.h"
#include "sandbox-shim/images/store.h"
#include "sandbox-shim/plan/limits.h"

enum { LAYOUT_FD = 3, INTO_FD = 4, MIB = 1024 * 1024, TREES = 1024 * 1024, SHORT = sizeof("sha256:") - 1 + 12 };
#define MOST (UINT64_C(16) << 30)

static int begin(struct image_store *s, const struct cli_call *c, bool locked)
{
    char dir[PATH_MAX];
    struct err e;

    *s = (struct image_store){-1, -1, -1};
    if (api_state_dir(c->state_dir, dir, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    if (access(dir, W_OK) != 0)
        return verb_fail(CLI_RUNTIME, "images lie in the state directory %s, which you cannot write: %s%s", dir,
                         strerror(errno), errno == ENOENT ? " (`countersign up` makes it)" : "");
    return images_open(s, dir, locked, &e) == 0 ? CLI_OK : verb_fail(CLI_RUNTIME, "%s", e.text);
}

static struct span name_wrong(const char *name)
{
    return span_eq(span_str(name), SPAN(IMAGE_HOST)) ? SPAN("is what the machine's own files are called")
           : image_name_ok(span_str(name))           ? SPAN_NONE
                                           : SPAN("is no image's name, which has up to 63 of a-z 0-9 - . _");
}

/* --- import ----------------------------------------------------------------------- */

static void __attribute__((noreturn)) become(const char *program, int out, int layout, int into, char *const argv[])
{
    char *const nothing[] = {NULL};
    /* Out of the way of where they go. */
    int from = fcntl(layout, F_DUPFD_CLOEXEC, 10), to = fcntl(into, F_DUPFD_CLOEXEC, 10),
        zero = open("/dev/null", O_RDONLY | O_CLOEXEC), end = fcntl(out, F_DUPFD_CLOEXEC, 10);

    if (from >= 0 && to >= 0 && zero >= 0 && end >= 0 && dup2(zero, 0) == 0 && dup2(end, 1) == 1 &&
        dup2(from, LAYOUT_FD) == LAYOUT_FD && dup2(to, INTO_FD) == INTO_FD)
        (void)execve(program, argv, nothing);
    _exit(127);
}

/* What it says of the image; its words of what is wrong stand on standard error. -1: said. */
static int unpack(const char *dir, int into, char *const argv[], struct dynbuf *says)
{
    char program[PATH_MAX];
    int fd[2], status = 0, layout = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (layout < 0)
        return (void)verb_fail(CLI_RUNTIME, "%s cannot be opened: %s", dir, strerror(errno)), -1;
    if (verb_program("countersign-unpack-image", program) != 0 || pipe2(fd, O_CLOEXEC) != 0) {
        close(layout);
        return (void)verb_fail(CLI_RUNTIME, "%s cannot be run: is the installation complete?", program), -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(program, fd[1], layout, into, argv);
    close(fd[1]);
    close(layout);
    bool read = pid > 0 && file_read_fd(fd[0], says) == 0;
    close(fd[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid > 0 && read && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (pid <= 0 || WIFSIGNALED(status) || WEXITSTATUS(status) == 127 || !read)
        (void)verb_fail(CLI_RUNTIME, "what unpacks images ended before it had an answer");
    return -1;
}

static int digest_take(const struct json *says, struct digest *d)
{
    struct span text = json_text(says, SPAN("digest"));

    return text.n == IMAGE_DIGEST_TEXT ? hex_parse(span_from(text, sizeof("sha256:") - 1), d->b, DIGEST_BYTES) : -1;
}

static void say_list(const struct json *says, const char *key, const char *before)
{
    const struct json *list = json_get(says, span_str(key));

    if (!list || list->count == 0)
        return;
    fputs(before, stdout);
    for (const struct json *j = list->child; j; j = j->next) {
        fputs(j == list->child ? "" : ", ", stdout);
        print_text(j->text);
    }
    putchar('\n');
}

static void say(const struct json *says, const char *name, bool known)
{
    printf("%s is ", name);
    print_text(member_text(says, "digest"));
    printf("%s\n%llu layers, %llu files, folders and links, %llu MiB\n", known ? ", which was there already" : "",
           (unsigned long long)member_u64(says, "layers"), (unsigned long long)member_u64(says, "entries"),
           (unsigned long long)member_u64(says, "size") / MIB);
    if (member_u64(says, "left_out") > 0)
        printf("left out: %llu devices and pipes\n", (unsigned long long)member_u64(says, "left_out"));
    if (member_u64(says, "lost_rights") > 0)
        printf("%llu lost their setuid, setgid or sticky bit\n", (unsigned long long)member_u64(says, "lost_rights"));
    say_list(says, "variables_left_out", "variables not taken: ");
    say_list(says, "ignored", "of no meaning here: ");
}

static void print_import(const struct cli_call *c, const struct json *says, struct span text, bool known)
{
    struct dynbuf out;
    struct jsonw w;

    if (!c->json) {
        say(says, c->word[1], known);
        return;
    }
    dynbuf_init(&out, 2 * IMAGE_SAYS_MAX);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv(&w, "name", span_str(c->word[1]));
    jsonw_kv_bool(&w, "known", known);
    jsonw_kv_raw(&w, "image", text);
    jsonw_end_object(&w);
    print_json_line(dynbuf_span(&out));
    dynbuf_free(&out);
}

static int import_into(struct image_store *s, const struct cli_call *c, char *const argv[])
{
    struct dynbuf says;
    struct arena a;
    struct digest d;
    struct err e;
    bool known = false;
    int rc = CLI_RUNTIME, into = images_stage(s, &e);

    arena_init(&a, TREES);
    dynbuf_init(&says, IMAGE_SAYS_MAX);
    if (into < 0) {
        (void)verb_fail(CLI_RUNTIME, "%s", e.text);
        goto out;
    }
    if (unpack(c->word[0], into, argv, &says) != 0)
        goto out;
    const struct json *tree = json_parse(dynbuf_span(&says), &a);
    if (digest_take(tree, &d) != 0)
        (void)verb_fail(CLI_RUNTIME, "what unpacks images cannot be understood: is it of this version?");
    else if (images_commit(s, &d, span_str(c->word[1]), &known, &e) != 0)
        (void)verb_fail(CLI_RUNTIME, "%s", e.text);
    else {
        print_import(c, tree, dynbuf_span(&says), known);
        rc = CLI_OK;
    }
out:
    if (into >= 0)
        close(into);
    if (rc != CLI_OK)
        images_discard(s);
    dynbuf_free(&says);
    arena_free(&a);
    return rc;
}

int image_import(const struct cli_call *c)
{
    const char *most = cli_value(c, "most"), *ref = cli_value(c, "ref");
    char unpacker[] = "countersign-unpack-image", most_word[] = "--most", ref_word[] = "--ref", tty[] = "--terminal",
         number[32];
    char *argv[8] = {unpacker, most_word, number};
    size_t n = 3;
    uint64_t bytes = MOST;
    struct image_store s;
    struct err e;
    struct span wrong = name_wrong(c->word[1]);

    if (wrong.n > 0)
        return verb_fail(CLI_USAGE, "`%.64s` %.*s", c->word[1], SPAN_FMT(wrong));
    if (most && limits_bytes(&bytes, "--most", most, 1, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
    char *named = ref ? strdup(ref) : NULL;
    if (named) {
        argv[n++] = ref_word;
        argv[n++] = named;
    }
    if (isatty(STDERR_FILENO))
        argv[n++] = tty;
    int rc = begin(&s, c, true);
    if (rc == CLI_OK)
        rc = import_into(&s, c, argv);
    images_close(&s);
    free(named);
    return rc;
}

/* --- list --------------------------------------------------------------------------- */

struct listing {
    struct jsonw *json; /* NULL: for a person */
};

static int list_one(void *ctx, struct span name, const struct digest *d, int64_t since, struct span says)
{
    const struct listing *l = ctx;
    char digest[IMAGE_DIGEST_TEXT + 1], when[32];
    struct arena a;

    arena_init(&a, TREES);
    const struct json *tree = json_parse(says, &a);
    uint64_t size = member_u64(tree, "size");
    image_digest_text(d, digest);
    if (l->json) {
        jsonw_object(l->json);
        jsonw_kv(l->json, "name", name);
        jsonw_kv(l->json, "digest", span_str(digest));
        jsonw_kv_u64(l->json, "size", size);
        jsonw_kv_u64(l->json, "imported_ms", since > 0 ? (uint64_t)since * 1000 : 0);
        jsonw_end_object(l->json);
    } else {
        print_text(name);
        printf("  %.*s  %llu MiB  %s\n", SHORT, digest, (unsigned long long)size / MIB,
               time_text(since > 0 ? (uint64_t)since * 1000 : 0, when));
    }
    arena_free(&a);
    return 0;
}

int image_list(const struct cli_call *c)
{
    struct image_store s;
    struct dynbuf out;
    struct jsonw w;
    struct err e;
    struct listing l = {.json = c->json ? &w : NULL};
    int rc = begin(&s, c, false);

    dynbuf_init(&out, API_ANSWER_MAX);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv_array(&w, "images");
    if (rc == CLI_OK && images_each(&s, list_one, &l, &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc == CLI_OK && c->json)
        print_json_line(dynbuf_span(&out));
    dynbuf_free(&out);
    images_close(&s);
    return rc;
}

/* --- removal ------------------------------------------------------------------------- */

struct same {
    struct digest d;
    unsigned n;
};

static int count_same(void *ctx, struct span name, const struct digest *d, int64_t since, struct span says)
{
    struct same *s = ctx;

    s->n += memcmp(d->b, s->d.b, DIGEST_BYTES) == 0;
    return 0;
}

/* One that runs holds its image. One that is idle has nothing that could: the gateway is asked, if there is one. It
 * is restored with what the name means then, should the image have gone all the same. */
static int idle_uses(const struct cli_call *c, struct image_store *s)
{
    char digest[IMAGE_DIGEST_TEXT + 1];
    struct same same = {.n = 0};
    struct gateway_call g;
    struct span first = SPAN_NONE;
    struct err e;
    unsigned n = 0;

    if (image_name_read(s->names, span_str(c->word[0]), &same.d, NULL, &e) != 1 ||
        (images_each(s, count_same, &same, &e) == 0 && same.n > 1))
        return CLI_OK;
    image_digest_text(&same.d, digest);
    int rc = verb_begin(&g, c);
    bool runs = rc == CLI_OK && api_running(g.sock, &e) == 1;
    if (runs)
        rc = verb_ask(&g, "GET", "/api/v1/sandboxes/started", SPAN_NONE, 200);
    const struct json *all = runs && rc == CLI_OK ? json_get(g.tree, SPAN("started")) : NULL;
    for (const struct json *j = all ? all->child : NULL; j; j = j->next)
        if (span_eq(member_text(j, "state"), SPAN("idle")) && span_eq(member_text(j, "digest"), span_str(digest)))
            first = n++ == 0 ? member_text(j, "name") : first;
    if (n > 0)
        rc = verb_fail(CLI_RUNTIME,
                       "idle sandboxes use it, %u of them, such as %.*s: `countersign sandbox destroy` ends one, and "
                       "`countersign image import` gives the name another image, with which they are restored",
                       n, SPAN_FMT(first));
    verb_end(&g);
    return rc;
}

int image_rm(const struct cli_call *c)
{
    struct image_store s;
    struct err e;
    int rc = begin(&s, c, true);

    if (rc == CLI_OK)
        rc = idle_uses(c, &s);
    if (rc == CLI_OK && images_remove(&s, span_str(c->word[0]), &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    if (rc == CLI_OK && c->json)
        print_json_line(SPAN("{\"removed\":true}"));
    images_close(&s);
    return rc;
}
