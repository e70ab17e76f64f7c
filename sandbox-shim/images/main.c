/* countersign-unpack-image: one image out of a layout, into a folder.
 *
 * `countersign image import` starts it with the layout as descriptor 3 and an empty folder as descriptor 4. What it
 * reads is anybody's, so it is confined before the first byte: it can open nothing but what lies in these two, make
 * no program run, and reach no network. What it made of it stands on standard output, as JSON; what is wrong, in
 * words on standard error, and then nothing of the folder is used. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json/json.h"
#include "common/log.h"
#include "common/role/role.h"
#include "sandbox-shim/images/layer.h"
#include "sandbox-shim/images/layout.h"
#include "sandbox-shim/images/store.h"

enum { LAYOUT_FD = 3, INTO_FD = 4, IN_PIECE = 64 * 1024, OUT_PIECE = 256 * 1024, TREES = 64 * 1024 * 1024 };

struct unpacking {
    struct layout layout;
    struct layering layering;
    uint64_t most, made; /* bytes that its layers may decode to, and that those before did */
    bool terminal;
    unsigned said; /* percent of this layer */
};

/* --- a layer --------------------------------------------------------------------------------- */

static void progress(struct unpacking *u, size_t i, const char *what, uint64_t done, uint64_t all)
{
    unsigned percent = all ? (unsigned)(done * 100 / all) : 100;

    if (!u->terminal || percent == u->said)
        return;
    u->said = percent;
    fprintf(stderr, "\r\033[K%s layer %zu of %zu: %u %%", what, i + 1, u->layout.nlayers, percent);
}

static int too_much(const struct unpacking *u, struct err *e)
{
    return err_set(e, "it unpacks to more than %llu bytes (--most says how many it may)",
                   (unsigned long long)u->most);
}

struct decoding {
    struct unpacking *u;
    struct coder *coder; /* NULL: it is a tar stream as it is */
    struct digest_ctx *plain;
    uint64_t made;
};

static int plain_take(struct decoding *d, struct span bytes, struct err *e)
{
    d->made += bytes.n;
    if (d->made > d->u->most - d->u->made)
        return too_much(d->u, e);
    digest_add(d->plain, bytes);
    return layer_take(&d->u->layering, bytes, e);
}

static int coded_take(struct decoding *d, struct span in, struct err *e)
{
    static uint8_t out[OUT_PIECE];
    struct coder_step s = {.in = in, .made = 0};

    if (!d->coder)
        return plain_take(d, in, e);
    while (s.in.n > 0 || s.made == sizeof(out)) {
        if (coder_ended(d->coder) && s.in.n == 0)
            break;
        if (coder_ended(d->coder) && !coder_again(d->coder))
            return err_set(e, "bytes follow its end");
        if (!coder_step(d->coder, s.in, out, sizeof(out), &s))
            return err_set(e, "it is not coded as its media type says, or needs more memory than is given");
        if (s.made > 0 && plain_take(d, span_of(out, s.made), e) != 0)
            return -1;
    }
    return 0;
}

/* Its blob, from its beginning to its end, which is verified. */
static int stream(struct unpacking *u, size_t i, struct decoding *d, struct err *e)
{
    static uint8_t in[IN_PIECE];
    const struct layout_layer *layer = &u->layout.layer[i];
    struct blob b;
    size_t n = 0;
    int rc = blob_open(&b, LAYOUT_FD, &layer->blob, e);

    u->said = ~0u;
    while (rc == 0) {
        rc = blob_read(&b, in, sizeof(in), &n, e);
        if (rc != 0 || n == 0)
            break;
        progress(u, i, d ? u->layering.looks ? "looking into" : "unpacking" : "verifying", layer->blob.size - b.left,
                 layer->blob.size);
        rc = d ? coded_take(d, span_of(in, n), e) : 0;
    }
    blob_close(&b);
    return rc;
}

static int pass(struct unpacking *u, size_t i, bool looks, struct err *e)
{
    const struct layout_layer *layer = &u->layout.layer[i];
    struct decoding d = {.u = u, .plain = digest_begin()};
    struct digest got;
    int rc = 0;

    layer_begin(&u->layering, looks);
    if (layer->coding != CODING_IDENTITY && !(d.coder = coder_new(layer->coding)))
        rc = err_set(e, "there is no memory to decode it");
    if (rc == 0)
        rc = stream(u, i, &d, e);
    if (rc == 0 && d.coder && !coder_ended(d.coder))
        rc = err_set(e, "it is cut short");
    digest_end(d.plain, &got);
    if (rc == 0 && memcmp(got.b, layer->plain.b, DIGEST_BYTES) != 0)
        rc = err_set(e, "it decodes to what its configuration does not name");
    coder_free(&d.coder);
    if (rc == 0)
        rc = layer_end(&u->layering, e);
    layer_drop(&u->layering);
    if (!looks)
        u->made += d.made;
    return rc;
}

/* Every blob is verified before the first is unpacked, and each once more while it is. */
static int layers_unpack(struct unpacking *u, struct err *e)
{
    struct err why = {""};
    size_t i = 0;
    int rc = 0;

    for (i = 0; i < u->layout.nlayers && rc == 0; i++)
        rc = stream(u, i, NULL, &why);
    for (i = rc == 0 ? 0 : i; i < u->layout.nlayers && rc == 0; i++) {
        if (i > 0 && ((rc = pass(u, i, true, &why)) != 0 || (rc = layer_hide(&u->layering, &why)) != 0))
            continue;
        rc = pass(u, i, false, &why);
    }
    return rc == 0 ? 0 : err_set(e, "layer %zu: %s", i, why.text);
}

/* --- what is said of it -------------------------------------------------------------------------- */

static void put_list(struct jsonw *w, const char *key, const struct span *list, size_t n)
{
    jsonw_kv_array(w, key);
    for (size_t i = 0; i < n && i < LAYOUT_NOTED_MAX; i++)
        jsonw_string(w, list[i]);
    jsonw_end_array(w);
}

static void describe(const struct unpacking *u, struct dynbuf *out)
{
    char digest[IMAGE_DIGEST_TEXT + 1];
    struct jsonw w;

    image_digest_text(&u->layout.digest, digest);
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "digest", span_str(digest));
    jsonw_kv(&w, "machine", layout_machine());
    jsonw_kv_u64(&w, "layers", u->layout.nlayers);
    jsonw_kv_u64(&w, "entries", u->layering.entries);
    jsonw_kv_u64(&w, "size", u->layering.bytes);
    jsonw_kv_u64(&w, "left_out", u->layering.left_out);
    jsonw_kv_u64(&w, "lost_rights", u->layering.lost_rights);
    put_list(&w, "ignored", u->layout.ignored, u->layout.nignored);
    put_list(&w, "variables_left_out", u->layout.variables, u->layout.nvariables);
    jsonw_end_object(&w);
}

static int put_file(const char *name, struct span bytes, struct err *e)
{
    int fd = openat(INTO_FD, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd >= 0 ? file_write_fd(fd, bytes) : -1;

    if (rc != 0)
        (void)err_errno(e, "it cannot be written");
    if (fd >= 0)
        close(fd);
    return rc;
}

static int unpack(struct unpacking *u, const char *ref, struct arena *a, struct err *e)
{
    struct dynbuf says;
    int rc = layout_read(&u->layout, LAYOUT_FD, ref, a, e);

    dynbuf_init(&says, IMAGE_SAYS_MAX);
    if (rc == 0 && (mkdirat(INTO_FD, "root", 0755) != 0 ||
                    (u->layering.root = openat(INTO_FD, "root", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0))
        rc = err_errno(e, "it cannot be unpacked");
    if (rc == 0)
        rc = layers_unpack(u, e);
    if (rc == 0)
        rc = bones_put(u->layering.root, e);
    if (rc == 0)
        describe(u, &says);
    if (rc == 0 && !dynbuf_ok(&says))
        rc = err_set(e, "what it says of itself is too long");
    if (rc == 0 &&
        (put_file("env", dynbuf_span(&u->layout.env), e) != 0 || put_file("image.json", dynbuf_span(&says), e) != 0 ||
         file_write_fd(STDOUT_FILENO, dynbuf_span(&says)) != 0))
        rc = -1;
    if (u->terminal)
        fputs("\r\033[K", stderr);
    dynbuf_free(&says);
    layout_free(&u->layout);
    return rc;
}

static int read_words(int argc, char **argv, struct unpacking *u, const char **ref)
{
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--terminal") == 0)
            u->terminal = true;
        else if (strcmp(argv[i], "--ref") == 0 && value)
            *ref = argv[++i];
        else if (strcmp(argv[i], "--most") != 0 || !value || span_u64(span_str(argv[++i]), INT64_MAX, &u->most) != 0)
            return -1;
    }
    return u->most > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const char *const into[] = {"/proc/self/fd/4", NULL}, *const from[] = {"/proc/self/fd/3", NULL};
    static const struct wall wall = {.calls = WALL_FILES | WALL_LINKS, .rw_dirs = into, .ro_paths = from};
    const struct rlimit none = {0, 0};
    static struct unpacking u;
    const char *ref = NULL;
    struct arena a;
    struct err e = {""};

    log_init("unpack-image", LOG_WARN);
    if (read_words(argc, argv, &u, &ref) != 0 || fcntl(LAYOUT_FD, F_GETFD) < 0 || fcntl(INTO_FD, F_GETFD) < 0)
        log_die("countersign image import starts this program");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
        log_die("it cannot be confined: %s", strerror(errno));
    (void)umask(022);
    arena_init(&a, TREES);
    role_confine_alone(&wall);
    int rc = unpack(&u, ref, &a, &e);
    if (rc != 0)
        fprintf(stderr, "countersign: %s\n", e.text);
    arena_free(&a);
    return rc == 0 ? 0 : 1;
}
