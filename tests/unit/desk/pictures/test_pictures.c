/* Who sees pictures when, what blocks, and who pays for many. Covers E19 as far as bodies are pictures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include <zlib.h>

#include "common/id.h"
#include "common/memfd.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "web-approval/ask.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/groups/groups.h"
#include "sandbox-shim/inside/shim_tar.h"
#include "web-approval/pictures/pictures.h"
#include "web-approval/viewer/view.h"

#define PNG_HEAD "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
#define PNG_MADE                                                                                                     \
    PNG_HEAD "\0\0\0\x02\0\0\0\x01"                                                                                  \
             "whatever lies between"                                                                                 \
             "\0\0\0\0IEND\xae\x42\x60\x82"

/* --- what is not here ------------------------------------------------------- */

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    return NULL;
}

int chan_commit(struct chan *c)
{
    return -1;
}

int frame_take_fd(struct frame *f, unsigned i)
{
    return -1;
}

uint64_t loop_now(const struct loop *l)
{
    return 0;
}

uint64_t loop_wall(const struct loop *l)
{
    return 0;
}

/* --- viewers, played --------------------------------------------------------- */

static struct desk desk;
static unsigned begun, ended;
static bool no_more; /* none can be started */
static struct {
    size_t n;
    uint8_t bytes[64 * 1024];
} given; /* to the last one */

static bool begin(struct desk *d, struct viewing *run, int picture)
{
    struct span s;

    begun++;
    assert_true(memfd_map(picture, VIEW_BYTES_MAX, &s) == 0 && s.n > 0); /* sealed */
    given.n = s.n < sizeof(given.bytes) ? s.n : sizeof(given.bytes);
    memcpy(given.bytes, s.p, given.n);
    memfd_unmap(&s);
    return !no_more;
}

static void end(struct desk *d, struct viewing *run)
{
    ended++;
}

static const struct viewer_ops ops = {begin, end};
static const struct viewed fine = {VIEW_SHOWN, VIEW_PNG, 20, 10, 2, 1, 1, 0, false};

/* The viewer with this number has made that, and says so. */
static void says(uint64_t id, struct span made, const struct viewed *v)
{
    struct viewing *run = pictures_run(&desk, id);

    assert_non_null(run);
    assert_int_equal(write(run->out, made.p, made.n), (ssize_t)made.n);
    assert_int_equal(memfd_seal(run->out), 0);
    pictures_said(&desk, run, v);
}

static size_t running(void)
{
    size_t n = 0;

    for (uint64_t id = 1; id < 200; id++)
        n += pictures_run(&desk, id) != NULL;
    return n;
}

/* --- pages ------------------------------------------------------------------ */

struct page {
    struct exchange x;
    struct view v;
    bool shown;
};

static void shown(struct exchange *x, struct view *v)
{
    struct page *p = (struct page *)(void *)x; /* first in it */

    p->shown = true;
    x->status = 200;
}

static unsigned handed_on;

static void answered(struct exchange *x)
{
    handed_on++;
}

static void page(struct page *p, const char *operator, const char * type, struct span body, size_t which)
{
    memset(p, 0, sizeof *p);
    p->x.desk = &desk;
    p->x.place = PLACE_PAGE;
    p->x.now_ms = 1000;
    p->x.file = -1;
    (void)snprintf(p->x.operator, sizeof p->x.operator, "%s", operator);
    arena_init(&p->x.arena, DESK_ARENA_MAX);
    dynbuf_init(&p->x.out, 1 << 20);
    struct span fields = arena_printf(&p->x.arena, "[[\"content-type\",\"%s\"]]", type);
    p->v.t = (struct ticket){.id = SPAN("aaaa0000000000000000000000"),
                             .method = SPAN("POST"),
                             .host = SPAN("h.example"),
                             .path = SPAN("/"),
                             .effect = SPAN("write"),
                             .fields_json = fields,
                             .facts_json = SPAN("[]"),
                             .body_size = body.n};
    p->v.bytes = body;
    p->v.there = true;
    pictures_see(&p->x, &p->v, which, shown);
}

/* As its page does it, once its pictures were looked at. */
static bool blocks(struct page *p)
{
    struct arena a;

    arena_init(&a, READING_ARENA);
    page_read(&p->x, &p->v, &a);
    arena_free(&a);
    return p->v.r.blocks;
}

static void over(struct page *p)
{
    if (p->x.file >= 0)
        close(p->x.file);
    arena_free(&p->x.arena);
    dynbuf_free(&p->x.out);
}

static int setup(void **state)
{
    exchange_answered = answered;
    pictures_by = &ops;
    begun = ended = handed_on = 0;
    no_more = false;
    return 0;
}

/* Nothing of one test is left for the next. */
static int teardown(void **state)
{
    pictures_expire(&desk, UINT64_MAX);
    free(desk.pictures);
    desk.pictures = NULL;
    return 0;
}

static struct span picture(unsigned n)
{
    static char text[256][32];

    (void)snprintf(text[n], sizeof text[n], "\x89PNG\r\n\x1a\n number %u", n);
    return span_str(text[n]);
}

/* --- tests ------------------------------------------------------------------ */

static void one_is_shown_and_kept(void **state)
{
    static struct page p, again, one;

    page(&p, "uid 1", "image/png", picture(0), PICTURES_ALL);
    assert_false(p.shown);
    says(1, SPAN(PNG_MADE), &fine);
    assert_true(p.shown && handed_on == 1 && ended == 1 && p.x.file < 0);
    assert_false(blocks(&p));
    page_pictures(&p.x, &p.v);
    assert_true(span_find(dynbuf_span(&p.x.out),
                          SPAN("<img src=\"/tickets/aaaa0000000000000000000000/picture?n=0\"")) < p.x.out.n);
    assert_true(span_find(dynbuf_span(&p.x.out), SPAN("PNG, 20 &#215; 10 pixels")) < p.x.out.n);
    page(&again, "uid 2", "image/png", picture(0), PICTURES_ALL);
    assert_true(again.shown && begun == 1 && handed_on == 1); /* who asked is still on the stack */
    page(&one, "uid 2", "image/png", picture(0), 0);
    assert_true(one.shown && one.x.file >= 0 && one.x.file_size == sizeof(PNG_MADE) - 1);
    pictures_give(&one.x, &one.v);
    assert_true(one.x.inert && strcmp(one.x.type, "image/png") == 0);
    over(&p);
    over(&again);
    over(&one);
}

/* What a viewer cannot show, says it cannot, or does not make as it says, blocks. */
static void what_is_not_shown_blocks(void **state)
{
    static const struct {
        struct viewed v;
        struct span made;
        const char *words;
    } rows[] = {
        {{.end = VIEW_DAMAGED, .format = VIEW_PNG, .frames = 1}, SPAN(""), "damaged"},
        {{.end = VIEW_LARGE, .format = VIEW_PNG, .frames = 1}, SPAN(""), "too large"},
        {{.end = VIEW_KIND, .frames = 1}, SPAN(""), "of a kind"},
        {{.end = VIEW_FAILED, .frames = 1}, SPAN(""), "without a word"},
        {{VIEW_SHOWN, VIEW_GIF, 20, 10, 2, 1, 2, 0, false}, SPAN(PNG_MADE), "follow each other"},
        {{VIEW_SHOWN, VIEW_PNG, 20, 10, 3, 1, 1, 0, false}, SPAN(PNG_MADE), "without a word"},
        {{VIEW_SHOWN, VIEW_PNG, 20, 10, 2, 1, 1, 0, false}, SPAN("<svg onload=alert(1)>"), "without a word"},
        {{VIEW_SHOWN, VIEW_PNG, 20, 10, 2, 1, 1, 0, false}, SPAN(""), "without a word"},
    };
    static struct page p;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        page(&p, "uid 1", "image/png", picture((unsigned)i), PICTURES_ALL);
        says(i + 1, rows[i].made, &rows[i].v);
        assert_true(p.shown && blocks(&p));
        assert_non_null(strstr(p.v.r.flag[0].words, rows[i].words));
        over(&p);
    }
    /* one that cannot be started, one that ends without a word, and none at all */
    no_more = true;
    page(&p, "uid 1", "image/png", picture(20), PICTURES_ALL);
    pictures_expire(&desk, 0);
    assert_true(p.shown && blocks(&p));
    over(&p);
    no_more = false;
    page(&p, "uid 1", "image/png", picture(21), PICTURES_ALL);
    pictures_lost(&desk, NULL);
    assert_true(p.shown && blocks(&p));
    over(&p);
    pictures_by = NULL;
    page(&p, "uid 1", "image/png", picture(22), PICTURES_ALL);
    pictures_expire(&desk, 0);
    assert_true(p.shown && blocks(&p));
    over(&p);
    print_message("ok E19 unit\n");
}

static void what_is_odd_is_flagged(void **state)
{
    const struct viewed odd = {VIEW_SHOWN, VIEW_JPEG, 2000, 1000, 2, 1, 1, 7, true};
    static const char *const words[] = {"another format", "more bytes follow", "seen through", "much smaller"};
    static struct page p;

    page(&p, "uid 1", "image/png", picture(1), PICTURES_ALL);
    says(1, SPAN(PNG_MADE), &odd);
    assert_false(blocks(&p));
    for (size_t i = 0; i < 4; i++) {
        size_t k = 0;
        while (k < p.v.r.nflags && !strstr(p.v.r.flag[k].words, words[i]))
            k++;
        if (k == p.v.r.nflags)
            fail_msg("no flag: %s", words[i]);
    }
    over(&p);
}

/* Somebody with many pages of pictures is served; somebody else beside them too, and at once. */
static void many_of_one_leave_room_for_another(void **state)
{
    static struct page many[PICTURES_WAIT_EACH_MAX + 1], other;

    for (unsigned i = 0; i < PICTURES_WAIT_EACH_MAX; i++)
        page(&many[i], "uid 1", "image/png", picture(i), PICTURES_ALL);
    assert_int_equal(running(), PICTURES_VIEWERS_MAX - 1);
    page(&many[PICTURES_WAIT_EACH_MAX], "uid 1", "image/png", picture(30), PICTURES_ALL);
    assert_true(many[PICTURES_WAIT_EACH_MAX].shown); /* told at once that it is too much */
    assert_true(blocks(&many[PICTURES_WAIT_EACH_MAX]));
    assert_non_null(strstr(many[PICTURES_WAIT_EACH_MAX].v.r.flag[0].words, "load this page again"));
    page(&other, "uid 2", "image/png", picture(40), PICTURES_ALL);
    assert_int_equal(running(), PICTURES_VIEWERS_MAX);
    says(3, SPAN(PNG_MADE), &fine);
    assert_true(other.shown && !blocks(&other));
    for (uint64_t id = 1; id < 20; id++)
        if (pictures_run(&desk, id))
            says(id, SPAN(PNG_MADE), &fine);
    for (unsigned i = 0; i < PICTURES_WAIT_EACH_MAX; i++)
        assert_true(many[i].shown && !blocks(&many[i]));
    for (unsigned i = 0; i <= PICTURES_WAIT_EACH_MAX; i++)
        over(&many[i]);
    over(&other);
}

static void all_pages_together_are_bounded(void **state)
{
    static struct page pages[PICTURES_WAIT_MAX + 1];
    char who[16];

    for (unsigned i = 0; i <= PICTURES_WAIT_MAX; i++) {
        (void)snprintf(who, sizeof who, "uid %u", i);
        page(&pages[i], who, "image/png", picture(i), PICTURES_ALL);
    }
    for (unsigned i = 0; i <= PICTURES_WAIT_MAX; i++)
        assert_int_equal(pages[i].shown, i == PICTURES_WAIT_MAX);
    pictures_expire(&desk, 1000 + PICTURES_MS); /* nobody waits for ever */
    pictures_expire(&desk, 1000 + PICTURES_MS);
    for (unsigned i = 0; i <= PICTURES_WAIT_MAX; i++) {
        assert_true(pages[i].shown && blocks(&pages[i]));
        over(&pages[i]);
    }
}

/* Those that were asked for longest ago make room. */
static void so_many_are_kept(void **state)
{
    static struct page p;

    for (unsigned i = 0; i < PICTURES_KEPT_MAX + 1; i++) {
        page(&p, "uid 1", "image/png", picture(i), PICTURES_ALL);
        says(i + 1, SPAN(PNG_MADE), &fine);
        over(&p);
    }
    begun = 0;
    page(&p, "uid 1", "image/png", picture(1), PICTURES_ALL);
    assert_int_equal(begun, 0);
    over(&p);
    page(&p, "uid 1", "image/png", picture(0), PICTURES_ALL);
    assert_int_equal(begun, 1);
    pictures_lost(&desk, NULL);
    over(&p);
}

/* Only the page that shows them takes a yes. */
static void nothing_else_approves_them(void **state)
{
    static struct page p;
    static struct group g;
    unsigned status = 0;

    page(&p, "uid 1", "image/png", picture(1), PICTURES_ALL);
    says(1, SPAN(PNG_MADE), &fine);
    assert_false(blocks(&p));
    assert_null(deciding_refuses(&p.x, &p.v, SPAN_NONE, &status));
    p.x.place = PLACE_CONTROL;
    assert_non_null(deciding_refuses(&p.x, &p.v, SPAN_NONE, &status));
    assert_int_equal(status, 409);
    g.n = 1;
    g.row[0] = p.v;
    assert_string_equal(group_alone(&g, 0), "its pictures and packages are on its own page");
    over(&p);
}

/* --- packages --------------------------------------------------------------- */

enum { TAR_ROOM = 64 * 1024 };
static uint8_t tar[TAR_ROOM];
static size_t ntar;

static void member(enum tar_type type, const char *name, const char *target, const char *says)
{
    struct tar_member m = {.type = type, .mode = 0644, .size = strlen(says)};

    (void)snprintf(m.name, sizeof(m.name), "%s", name);
    (void)snprintf(m.target, sizeof(m.target), "%s", target);
    ntar += tar_head(tar + ntar, &m);
    memcpy(tar + ntar, says, m.size);
    ntar += m.size + tar_pad(m.size);
}

/* The body with which npm publishes what is in `tar`; request: what it says of it. */
static struct span published(const char *request, bool whole)
{
    static uint8_t gz[TAR_ROOM];
    static char body[3 * TAR_ROOM];
    z_stream z = {.next_in = tar, .avail_in = (uInt)ntar, .next_out = gz, .avail_out = sizeof(gz)};
    size_t n = (size_t)snprintf(body, sizeof(body), "{%s,\"_attachments\":{\"a.tgz\":{\"data\":\"", request);

    if (whole)
        z.avail_in += 2 * TAR_BLOCK; /* of zeros */
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t ngz = sizeof(gz) - z.avail_out;
    (void)deflateEnd(&z);
    n += base64_encode(span_of(gz, ngz), body + n);
    n += (size_t)snprintf(body + n, sizeof(body) - n, "\"}}}");
    memset(tar, 0, sizeof(tar));
    ntar = 0;
    return span_of(body, n);
}

/* Its page, with what a viewer says of it. */
static void seen(struct page *p, struct span body)
{
    struct dynbuf list;
    struct viewed v;
    uint64_t id = 0;

    page(p, "uid 1", "application/json", body, PICTURES_ALL);
    while (!pictures_run(&desk, id) && id < 1000)
        id++;
    dynbuf_init(&list, VIEW_PNG_MAX);
    assert_int_equal(p->v.r.npictures, 1);
    view_make(span_of(given.bytes, given.n), &list, &v);
    says(id, dynbuf_span(&list), &v);
    dynbuf_free(&list);
    assert_true(p->shown);
}

static bool flags(struct page *p, const char *words, const char *name)
{
    for (size_t i = 0; i < p->v.r.nflags; i++)
        if (strstr(p->v.r.flag[i].words, words) && (!name || span_eq(p->v.r.flag[i].name, span_str(name))))
            return true;
    return false;
}

#define SAID "\"name\":\"acme\",\"versions\":{\"1.0.0\":{\"name\":\"acme\",\"version\":\"1.0.0\"}}"

static void a_package_is_listed_and_what_is_odd_in_it_flagged(void **state)
{
    static struct page p;
    static const char *const honest[] = {"runs",          "otherwise",    "secrets", "link",           "one name",
                                         "more than one", "bytes follow", "builds",  "no package.json"};

    member(TAR_FILE, "package/index.js", "", "1");
    member(TAR_FILE, "package/package.json", "", "{\"name\":\"acme\",\"version\":\"1.0.0\"}");
    member(TAR_FILE, "package/<b>.env.example", "", "");
    seen(&p, published(SAID, true));
    assert_false(blocks(&p));
    for (size_t i = 0; i < sizeof(honest) / sizeof(honest[0]); i++)
        assert_false(flags(&p, honest[i], NULL));
    page_pictures(&p.x, &p.v);
    struct span html = dynbuf_span(&p.x.out);
    assert_true(span_find(html, SPAN("<b>acme</b> 1.0.0, and has 3 files")) < html.n);
    assert_true(span_find(html, SPAN("package/index.js</td>")) < html.n);
    assert_true(span_find(html, SPAN("&lt;b&gt;.env.example")) < html.n && span_find(html, SPAN("<img")) == html.n);
    over(&p);
    member(TAR_FILE, "package/package.json", "", "{\"name\":\"acme\",\"version\":\"1.0.0\"}");
    member(TAR_FILE, "x/package.json", "",
           "{\"name\":\"acmee\",\"version\":\"1.0.0\",\"dependencies\":{\"evil\":\"1\"},"
           "\"scripts\":{\"postinstall\":\"node x.js\",\"test\":\"t\"}}");
    member(TAR_FILE, "package/binding.gyp", "", "{}");
    member(TAR_FILE, "package/config/.ENV.production", "", "k");
    member(TAR_FOLDER, "package/.git", "", "");
    member(TAR_FILE, "package/.git/config", "", "");
    member(TAR_LINK, "package/l", "../../etc/passwd", "");
    member(TAR_FILE, "package/binding.gyp", "", "{ }");
    member(TAR_FILE, "package/.npmrc", "", ""); /* behind the name that stands twice */
    seen(&p, published(SAID, true));
    assert_false(blocks(&p));
    assert_true(flags(&p, "more than one package.json", NULL));
    assert_true(flags(&p, "installs this package runs", "postinstall"));
    assert_true(flags(&p, "otherwise", "postinstall") && flags(&p, "otherwise", "name"));
    assert_true(flags(&p, "otherwise", "dependencies") && !flags(&p, "otherwise", "version"));
    assert_true(flags(&p, "builds and runs", "package/binding.gyp"));
    assert_true(flags(&p, "secrets", "package/config/.ENV.production") &&
                flags(&p, "secrets", "package/.git/config"));
    assert_true(flags(&p, "secrets", "package/.npmrc"));
    assert_true(flags(&p, "has a link", "package/l") && flags(&p, "one name", "package/binding.gyp"));
    over(&p);
    member(TAR_FILE, "package/package.json", "", "{\"name\":\"acme\",\"version\":\"1.0.1\"}");
    seen(&p, published(SAID, true));
    (void)blocks(&p);
    assert_true(flags(&p, "otherwise", "version"));
    over(&p);
}

/* Cut short, with a name twice in what it says of itself, of too many files, and what leads out: no yes. */
static void a_package_that_programs_may_unpack_otherwise_blocks(void **state)
{
    static struct page p;

    for (int i = 0; i < 4; i++) {
        member(TAR_FILE, "package/package.json", "",
               i == 1 ? "{\"scripts\":{},\"scripts\":{\"install\":\"x\"}}"
                      : "{\"name\":\"acme\",\"version\":\"1.0.0\"}");
        if (i == 2) {
            member(TAR_FILE, "package/aa/leads-out", "", "");
            memcpy(tar + ntar - TAR_BLOCK, "../", 3); /* and so of another sum, too */
        }
        if (i == 3)
            tar[600] ^= 1; /* in what is said, nobody sees it: it is another package */
        seen(&p, published(SAID, i != 0));
        assert_int_equal(blocks(&p), i < 3);
        page_pictures(&p.x, &p.v);
        over(&p);
    }
    memset(tar, 'x', 2048);
    ntar = 2048;
    seen(&p, published(SAID, true)); /* gzip, and no package: said of the value, as before */
    assert_false(blocks(&p));
    assert_true(flags(&p, "bytes of", NULL));
    over(&p);
}

/* The API still takes a yes to a package, which it gives with the body; its own page alone shows its files. */
static void a_package_is_no_picture_to_the_api(void **state)
{
    static struct page p;
    static struct group g;
    unsigned status = 0;

    member(TAR_FILE, "package/package.json", "", "{\"name\":\"acme\",\"version\":\"1.0.0\"}");
    seen(&p, published(SAID, true));
    p.x.place = PLACE_CONTROL;
    assert_null(deciding_refuses(&p.x, &p.v, SPAN_NONE, &status));
    g.n = 1;
    g.row[0] = p.v;
    assert_non_null(group_alone(&g, 0));
    over(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_is_shown_and_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_shown_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_odd_is_flagged, setup, teardown),
        cmocka_unit_test_setup_teardown(many_of_one_leave_room_for_another, setup, teardown),
        cmocka_unit_test_setup_teardown(all_pages_together_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_else_approves_them, setup, teardown),
        cmocka_unit_test_setup_teardown(a_package_is_listed_and_what_is_odd_in_it_flagged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_package_that_programs_may_unpack_otherwise_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_package_is_no_picture_to_the_api, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
