#include "proxy/images/images.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

enum { HEX = 2 * DIGEST_BYTES, FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

bool image_name_ok(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= IMAGE_NAME_MAX && !span_eq(s, SPAN(IMAGE_HOST));
}

void image_digest_text(const struct digest *d, char out[IMAGE_DIGEST_TEXT + 1])
{
    memcpy(out, "sha256:", sizeof("sha256:"));
    hex_text(span_of(d->b, DIGEST_BYTES), out + sizeof("sha256:") - 1);
}

int image_hex(struct span s, struct digest *d)
{
    char again[HEX + 1];

    if (s.n != HEX || hex_parse(s, d->b, DIGEST_BYTES) != 0)
        return -1;
    hex_text(span_of(d->b, DIGEST_BYTES), again);
    return memcmp(again, s.p, HEX) == 0 ? 0 : -1;
}

int image_name_read(int names, struct span name, struct digest *d, int64_t *since, struct err *e)
{
    char path[IMAGE_NAME_MAX + 1];
    struct dynbuf text;
    struct stat st;
    int rc = -1;

    if (!image_name_ok(name))
        return 0;
    (void)snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    int fd = openat(names, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, "the name %s cannot be read", path);
    dynbuf_init(&text, IMAGE_DIGEST_TEXT + 1);
    if (file_read_fd(fd, &text) == 0 && fstat(fd, &st) == 0 && text.n == IMAGE_DIGEST_TEXT + 1 &&
        text.p[text.n - 1] == '\n' && span_starts(dynbuf_span(&text), SPAN("sha256:")) &&
        image_hex(span_of(text.p + text.n - 1 - HEX, HEX), d) == 0)
        rc = 1;
    else
        (void)err_set(e, "the name %s is damaged", path);
    if (since && rc == 1)
        *since = st.st_mtim.tv_sec;
    dynbuf_free(&text);
    close(fd);
    return rc;
}

static int names_open(const char *state_dir, struct err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/images/names", state_dir);

    if (n <= 0 || (size_t)n >= sizeof(path))
        return err_set(e, "the state directory's path is too long");
    int fd = open(path, FOLDER);
    return fd >= 0 || errno == ENOENT ? fd : err_errno(e, "%s cannot be opened", path);
}

int image_find(const char *state_dir, struct span name, struct digest *d, struct err *e)
{
    int names;

    if (e)
        e->text[0] = '\0';
    names = names_open(state_dir, e);
    if (names < 0)
        return errno == ENOENT ? 0 : -1;
    int rc = image_name_read(names, name, d, NULL, e);
    close(names);
    return rc;
}

int image_hold(const char *state_dir, const struct digest *d, struct err *e)
{
    char path[PATH_MAX], hex[HEX + 1];
    struct stat st;

    hex_text(span_of(d->b, DIGEST_BYTES), hex);
    int n = snprintf(path, sizeof(path), "%s/images/%s", state_dir, hex);
    int fd = n > 0 && (size_t)n < sizeof(path) ? open(path, FOLDER) : -1;
    if (fd < 0)
        return err_set(e, "its image is not there any more");
    if (flock(fd, LOCK_SH | LOCK_NB) != 0 || fstatat(fd, "root", &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode)) {
        close(fd);
        return err_set(e, "its image is being removed");
    }
    return fd;
}
