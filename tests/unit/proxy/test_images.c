/* Images as the parent finds them for the warden: by their names, and the machine's own files by its list of
 * packages. */
#include "tests/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/images/images.h"
#include "proxy/parent/parent.h"

#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct child warden;
static struct dynbuf said;
static char top[] = "/tmp/test_images.XXXXXX";
static struct config config;
static struct parent parent;
static const char *packages; /* what is opened in place of the machine's list; NULL: there is none */

struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance)
{
    assert_int_equal(role, ROLE_WARDEN);
    return &warden;
}

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    assert_int_equal(type, M_BOX_IMAGE);
    assert_int_equal(id, 9);
    dynbuf_reset(&said);
    return &said;
}

int chan_commit(struct chan *c)
{
    return 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (strcmp(path, "/var/lib/dpkg/status") != 0)
        return __real_open(path, flags);
    if (packages != NULL)
        return __real_open(packages, flags);
    errno = ENOENT;
    return -1;
}

static void in(const char *command)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "cd %s && { %s; }", top, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

static int begin(void **state)
{
    if (!mkdtemp(top))
        return -1;
    (void)snprintf(config.state_dir, sizeof(config.state_dir), "%s", top);
    parent.config = &config;
    warden.chan = (struct chan *)&warden;
    dynbuf_init(&said, 4096);
    return 0;
}

static int finish(void **state)
{
    char line[64];
    dynbuf_free(&said);
    (void)snprintf(line, sizeof(line), "rm -rf %s", top);
    return system(line);
}

/* What is said of this name. */
static bool asked_who_had(const char *name, const char *had, char digest[IMAGE_DIGEST_TEXT + 1], bool *why)
{
    struct dynbuf b;
    dynbuf_init(&b, 256);
    dynbuf_reset(&said);
    msg_put_span(&b, span_str(name));
    if (*had)
        msg_put_span(&b, span_str(had));
    parent_image_find(&parent, &(struct frame){.type = M_BOX_IMAGE, .id = 9, .payload = dynbuf_span(&b)});
    dynbuf_free(&b);
    struct msg_in m = msg_in(dynbuf_span(&said));
    bool there = msg_get_bool(&m);
    struct span text = msg_get_span(&m, IMAGE_DIGEST_TEXT);
    (void)snprintf(digest, IMAGE_DIGEST_TEXT + 1, "%.*s", SPAN_FMT(text));
    *why = msg_get_span(&m, 512).n > 0;
    assert_int_equal(msg_end(&m), 0);
    return there;
}

static bool asked(const char *name, char digest[IMAGE_DIGEST_TEXT + 1], bool *why)
{
    return asked_who_had(name, "", digest, why);
}

static void the_machines_own_files_are_its_packages(void **state)
{
    static char list[128];
    char first[IMAGE_DIGEST_TEXT + 1], digest[IMAGE_DIGEST_TEXT + 1];
    bool why;
    assert_true(asked("", digest, &why) && !why);
    assert_string_equal(digest, ""); /* unknown */
    (void)snprintf(list, sizeof(list), "%s/status", top);
    in("printf abc > status");
    packages = list;
    assert_true(asked("", first, &why) && !why);
    assert_string_equal(first, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(asked("", digest, &why));
    assert_string_equal(digest, first);
    in("printf abcd > status"); /* something was installed */
    assert_true(asked("", digest, &why));
    assert_string_not_equal(digest, first);
    packages = NULL;
    assert_true(asked("", digest, &why));
    assert_string_equal(digest, "");
}

static void a_name_is_its_digest(void **state)
{
    char digest[IMAGE_DIGEST_TEXT + 1];
    bool why;
    assert_true(!asked("app", digest, &why) && !why); /* nobody ever imported one */
    in("mkdir -p images/names && echo sha256:" HEX " > images/names/app && echo x > images/names/bad");
    assert_true(asked("app", digest, &why) && !why);
    assert_string_equal(digest, "sha256:" HEX);
    assert_true(!asked("other", digest, &why) && !why);
    assert_true(!asked("../lock", digest, &why) && !why);
    assert_true(!asked("bad", digest, &why) && why);
}

static void one_is_held_by_its_digest_alone(void **state)
{
    char path[256];
    int held;
    assert_null(parent_image_hold(&parent, SPAN_NONE, &held, path, sizeof(path)));
    assert_int_equal(held, 0);
    static const char *const wrong[] = {"app", "sha256:..", "sha512:" HEX, "sha256:" HEX "0", "sha256:" HEX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_non_null(parent_image_hold(&parent, span_str(wrong[i]), &held, path, sizeof(path)));
        assert_int_equal(held, 0);
    }
    in("mkdir -p images/" HEX);
    assert_non_null(parent_image_hold(&parent, SPAN("sha256:" HEX), &held, path, sizeof(path))); /* being removed */
    in("mkdir images/" HEX "/root");
    assert_null(parent_image_hold(&parent, SPAN("sha256:" HEX), &held, path, sizeof(path)));
    assert_true(held > 0 && strstr(path, "/images/" HEX));
    close(held - 1);
    assert_non_null(parent_image_hold(&parent, SPAN("sha256:" HEX), &held, path, 20));
}

static void who_had_one_keeps_it_while_it_is_there(void **state)
{
    char digest[IMAGE_DIGEST_TEXT + 1];
    bool why;
    in("mkdir -p images/names images/" HEX "/root && echo sha256:" OTHER " > images/names/app");
    assert_true(asked_who_had("app", "sha256:" HEX, digest, &why) && !why);
    assert_string_equal(digest, "sha256:" HEX);
    assert_true(asked_who_had("gone", "sha256:" HEX, digest, &why) && !why);
    assert_string_equal(digest, "sha256:" HEX);
    in("rm -r images/" HEX);
    assert_true(asked_who_had("app", "sha256:" HEX, digest, &why) && !why);
    assert_string_equal(digest, "sha256:" OTHER);
    assert_false(asked_who_had("gone", "sha256:" HEX, digest, &why) || why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machines_own_files_are_its_packages),
        cmocka_unit_test(a_name_is_its_digest),
        cmocka_unit_test(one_is_held_by_its_digest_alone),
        cmocka_unit_test(who_had_one_keeps_it_while_it_is_there),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
