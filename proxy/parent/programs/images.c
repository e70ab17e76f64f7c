/* Images of started sandboxes: which digest a name means, and that of the machine's own files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/images/images.h"
#include "proxy/parent/parent.h"

#define PACKAGES "/var/lib/dpkg/status"
enum { PIECE = 64 * 1024 };

/* What is installed, as Debian writes it down. False: nobody does here. */
static bool packages_read(int fd, struct digest *d)
{
    static uint8_t piece[PIECE];
    struct digest_ctx *hash = digest_begin();
    ssize_t n;
    while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            digest_add(hash, span_of(piece, (size_t)n));
    digest_end(hash, d);
    return n == 0;
}

/* Read anew when it is another file: so much is not read for each start. */
static bool packages_digest(struct digest *d)
{
    static struct {
        struct stat of;
        struct digest is;
        bool known;
    } last;
    struct stat st;
    int fd = open(PACKAGES, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        last.known = false;
    else if (!last.known || st.st_ino != last.of.st_ino || st.st_size != last.of.st_size ||
             st.st_mtim.tv_sec != last.of.st_mtim.tv_sec || st.st_mtim.tv_nsec != last.of.st_mtim.tv_nsec) {
        last.of = st;
        last.known = packages_read(fd, &last.is);
    }
    if (fd >= 0)
        close(fd);
    *d = last.is;
    return last.known;
}

/* Whoever had it keeps it, whatever its name means by now. */
static bool is_there(struct parent *p, struct span digest, struct digest *d)
{
    struct span hex = span_from(digest, sizeof("sha256:") - 1);
    int fd = digest.n == IMAGE_DIGEST_TEXT && hex_parse(hex, d->b, DIGEST_BYTES) == 0
                 ? image_hold(p->config->state_dir, d, NULL)
                 : -1;
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

void parent_image_find(struct parent *p, struct frame *f)
{
    struct child *warden = parent_child(p, ROLE_WARDEN, 0);
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, IMAGE_NAME_MAX), had = SPAN_NONE;
    char text[IMAGE_DIGEST_TEXT + 1] = "";
    struct digest d;
    struct err e = {""};
    if (m.rest.n > 0)
        had = msg_get_span(&m, IMAGE_DIGEST_TEXT);
    if (msg_end(&m) != 0) {
        log_error("a question for an image cannot be understood");
        return;
    }
    bool keeps = name.n > 0 && is_there(p, had, &d);
    int found = name.n > 0 && !keeps ? image_find(p->config->state_dir, name, &d, &e) : 1;
    if (found == 1 && (name.n > 0 || packages_digest(&d)))
        image_digest_text(&d, text);
    struct dynbuf *b = warden && warden->chan ? chan_begin(warden->chan, M_BOX_IMAGE, f->id) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, found == 1);
    msg_put_span(b, span_str(text));
    msg_put_span(b, span_str(found < 0 ? e.text : ""));
    (void)chan_commit(warden->chan);
}

const char *parent_image_hold(struct parent *p, struct span digest, int *held, char *path, size_t room)
{
    static struct err e;
    struct digest d;
    *held = 0;
    if (digest.n == 0)
        return NULL;
    struct span hex = span_from(digest, sizeof("sha256:") - 1);
    if (digest.n != IMAGE_DIGEST_TEXT || !span_starts(digest, SPAN("sha256:")) ||
        hex_parse(hex, d.b, DIGEST_BYTES) != 0)
        return "its image has no digest";
    char text[IMAGE_DIGEST_TEXT + 1];
    image_digest_text(&d, text); /* in small letters */
    int n = snprintf(path, room, "%s/images/%s", p->config->state_dir, text + sizeof("sha256:") - 1);
    if (n <= 0 || (size_t)n >= room)
        return "the state directory's path is too long";
    int fd = image_hold(p->config->state_dir, &d, &e);
    if (fd < 0)
        return e.text;
    *held = fd + 1;
    return NULL;
}
