/* What a layout says of its image, each document verified by its digest: index, manifest and configuration, parted by
 * NUL; in them @M and @C stand for what names the manifest and the configuration. What is taken is within its bounds,
 * no variable is taken that may not be, and what is refused is so in words that a terminal can show. */
#include "sandbox-shim/images/layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "tests/fuzz/fuzz.h"

static bool reached;
static char top[] = "/tmp/fuzz_layout.XXXXXX";
static int dir = -1;

bool fuzz_reached(void)
{
    return reached;
}

static void over(void)
{
    (void)unlinkat(dir, "oci-layout", 0);
    (void)unlinkat(dir, "index.json", 0);
    (void)unlinkat(dir, "blobs/sha256", AT_REMOVEDIR);
    (void)unlinkat(dir, "blobs", AT_REMOVEDIR);
    (void)rmdir(top);
}

static void put(const char *name, struct span bytes)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    MUST_HOLD(fd >= 0 && file_write_fd(fd, bytes) == 0);
    close(fd);
}

static void begin(void)
{
    if (dir >= 0)
        return;
    MUST_HOLD(mkdtemp(top) != NULL);
    dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MUST_HOLD(dir >= 0 && mkdirat(dir, "blobs", 0700) == 0 && mkdirat(dir, "blobs/sha256", 0700) == 0);
    put("oci-layout", SPAN("{\"imageLayoutVersion\":\"1.0.0\"}"));
    MUST_HOLD(atexit(over) == 0);
}

/* The text with its marks replaced. */
static void fill(struct dynbuf *out, struct span text, const char *mark, const char *with)
{
    for (size_t at; (at = span_find(text, span_str(mark))) < text.n; text = span_from(text, at + strlen(mark))) {
        (void)dynbuf_add(out, span_first(text, at));
        (void)dynbuf_add(out, span_str(with));
    }
    (void)dynbuf_add(out, text);
}

/* A blob with these bytes: what names it, and its file. */
static void blob(struct span bytes, char named[160], char file[96])
{
    char hex[2 * DIGEST_BYTES + 1];
    struct digest d;

    digest_of(bytes, &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    (void)snprintf(named, 160, "\"digest\":\"sha256:%s\",\"size\":%zu", hex, bytes.n);
    (void)snprintf(file, 96, "blobs/sha256/%s", hex);
    put(file, bytes);
}

static void look(const struct layout *l)
{
    MUST_HOLD(l->nlayers > 0 && l->nlayers <= LAYOUT_LAYERS_MAX && dynbuf_ok(&l->env) && l->env.n <= LAYOUT_ENV_MAX);
    for (size_t i = 0; i < l->nlayers; i++)
        MUST_HOLD(l->layer[i].coding == CODING_IDENTITY || l->layer[i].coding == CODING_GZIP ||
                  l->layer[i].coding == CODING_ZSTD);
    MUST_HOLD(l->env.n == 0 || l->env.p[l->env.n - 1] == '\0');
    for (size_t at = 0; at < l->env.n; at += strlen((const char *)l->env.p + at) + 1)
        MUST_HOLD(layout_variable_ok((const char *)l->env.p + at));
    reached = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct layout l;
    struct span index, manifest, config;
    struct dynbuf text;
    struct arena a;
    struct err e = {""};
    char c_named[160], m_named[160], c_file[96], m_file[96];

    begin();
    (void)span_cut(span_of(data, n), 0, &index, &manifest);
    (void)span_cut(manifest, 0, &manifest, &config);
    blob(config, c_named, c_file);
    dynbuf_init(&text, 1024 * 1024);
    fill(&text, manifest, "@C", c_named);
    blob(dynbuf_span(&text), m_named, m_file);
    dynbuf_reset(&text);
    fill(&text, index, "@M", m_named);
    put("index.json", dynbuf_span(&text));
    arena_init(&a, 16 * 1024 * 1024);
    if (layout_read(&l, dir, NULL, &a, &e) == 0)
        look(&l);
    else
        MUST_HOLD(e.text[0] != '\0');
    for (const char *w = e.text; *w; w++)
        MUST_HOLD((uint8_t)*w >= 0x20 && *w != 0x7f);
    layout_free(&l);
    arena_free(&a);
    dynbuf_free(&text);
    (void)unlinkat(dir, c_file, 0);
    (void)unlinkat(dir, m_file, 0);
    return 0;
}
