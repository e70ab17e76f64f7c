/* STATE_DIR/policies/pin: the version that a rollback has put in force. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "proxy/parent/versions/versions.h"

enum { PIN_MAX = 1024 };

static int sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int bad = fd < 0 || fsync(fd) != 0 ? -1 : 0;
    if (fd >= 0)
        close(fd);
    return bad;
}

int versions_put_file(const char *dir, const char *name, struct span text, struct err *e)
{
    char path[VERSIONS_PATH + 96], tmp[VERSIONS_PATH + 112];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    snprintf(tmp, sizeof(tmp), "%s.new", path);
    unlink(tmp);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "cannot write %s", tmp);
    int bad = file_write_fd(fd, text) != 0 || fsync(fd) != 0;
    bad |= close(fd) != 0;
    if (bad || rename(tmp, path) != 0 || sync_dir(dir) != 0)
        return err_errno(e, "cannot write %s", path);
    return 0;
}

static bool line_of(struct span *text, const char *key, struct span *value)
{
    struct span line, name;
    return span_cut(*text, '\n', &line, text) && span_cut(line, ' ', &name, value) && span_eq(name, span_str(key));
}

static int parse(struct span text, struct pin *out)
{
    struct span hex, since, by;
    uint8_t raw[DIGEST_BYTES];
    if (!line_of(&text, "digest", &hex) || hex.n != STORED_HEX || hex_parse(hex, raw, sizeof(raw)) != 0 ||
        !line_of(&text, "since", &since) || span_u64(since, UINT64_MAX, &out->since_ms) != 0 ||
        !line_of(&text, "by", &by) || by.n >= sizeof(out->by))
        return -1;
    snprintf(out->hex, sizeof(out->hex), "%.*s", SPAN_FMT(hex));
    snprintf(out->by, sizeof(out->by), "%.*s", SPAN_FMT(by));
    return 0;
}

static int pin_path(const char *state, char path[VERSIONS_PATH + 8], struct err *e)
{
    char dir[VERSIONS_PATH];
    if (versions_dir(state, dir, e) != 0)
        return -1;
    snprintf(path, VERSIONS_PATH + 8, "%s/pin", dir);
    return 0;
}

int pin_read(const char *state, struct pin *out, struct err *e)
{
    char path[VERSIONS_PATH + 8];
    struct dynbuf b;
    struct pin read = {.hex = ""};
    *out = read;
    if (pin_path(state, path, e) != 0)
        return -1;
    dynbuf_init(&b, PIN_MAX);
    int bad = file_read(path, &b);
    if (bad != 0 && (errno == ENOENT || errno == ENOTDIR))
        bad = 0;
    else if (bad != 0)
        err_errno(e, "cannot read %s, which says to which version the policy is pinned", path);
    else if ((bad = parse(dynbuf_span(&b), &read)) != 0)
        err_set(e, "%s does not say to which version the policy is pinned; remove it to go back to the policy files",
                path);
    else
        *out = read;
    dynbuf_free(&b);
    return bad;
}

int pin_write(const char *state, const struct pin *pin, struct err *e)
{
    char dir[VERSIONS_PATH];
    struct dynbuf b;
    if (versions_dir(state, dir, e) != 0)
        return -1;
    dynbuf_init(&b, PIN_MAX);
    dynbuf_addf(&b, "digest %s\nsince %llu\nby %s\n", pin->hex, (unsigned long long)pin->since_ms, pin->by);
    int bad = dynbuf_ok(&b) ? versions_put_file(dir, "pin", dynbuf_span(&b), e) : err_set(e, "no memory");
    dynbuf_free(&b);
    return bad;
}

int pin_remove(const char *state, struct err *e)
{
    char path[VERSIONS_PATH + 8], dir[VERSIONS_PATH];
    if (pin_path(state, path, e) != 0 || versions_dir(state, dir, e) != 0)
        return -1;
    if ((unlink(path) != 0 && errno != ENOENT) || sync_dir(dir) != 0)
        return err_errno(e, "cannot remove %s", path);
    return 0;
}
