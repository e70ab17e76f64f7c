/* A package as files: taken out of its gzipped tar with bounds, under names of our own, so that nothing in it says
 * where it is written. What programs would unpack differently is refused. Its bytes become objects of git, which
 * compares them, and nothing else is ever done with them. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_tar.h"

enum { STEP = 64 * 1024, NAME = 160, FILE_MODE = 0100644, PROGRAM_MODE = 0100755, LINK_MODE = 0120000 };

struct taking {
    struct tar tar;
    struct unpacked *u;
    const char *folder;
    uint64_t bytes;
    int file; /* the member that is written; -1: none is */
    bool in_manifest, ended;
    struct names names;
};

static void own_name(const char *folder, size_t nth, char to[NAME])
{
    (void)snprintf(to, NAME, "%s/%zu", folder, nth);
}

/* --- a member ---------------------------------------------------------------------------------- */

static bool content_add(struct taking *t, const void *p, size_t n)
{
    struct unpacked *u = t->u;

    for (const char *from = p; n > 0;) {
        ssize_t done = write(t->file, from, n);
        if (done <= 0)
            return false;
        if (t->in_manifest && u->manifest && u->nmanifest + (size_t)done <= PACKAGE_MANIFEST_MAX) {
            memcpy(u->manifest + u->nmanifest, from, (size_t)done);
            u->nmanifest += (size_t)done;
        }
        from += done;
        n -= (size_t)done;
    }
    return true;
}

/* Of a link it is where that leads. */
static const char *link_take(struct taking *t, const struct tar_member *m)
{
    static const char hard[] = "a second name of ";

    t->bytes += strlen(m->target);
    if (m->type == TAR_HARD_LINK && !content_add(t, hard, sizeof(hard) - 1))
        return "failed";
    return content_add(t, m->target, strlen(m->target)) ? NULL : "failed";
}

/* Why that is one, and of which member. */
static const char *odd(struct taking *t, const char *error, const char *why)
{
    if (error && strcmp(error, "odd") == 0) {
        t->u->why = why;
        (void)snprintf(t->u->at, sizeof(t->u->at), "%.*s", PACKAGE_WORD_MAX, t->tar.member.name);
    }
    return error;
}

static const char *member_take(struct taking *t)
{
    const struct tar_member *m = &t->tar.member;
    const char *name = strchr(m->name, '/');
    size_t deep = 0;
    char own[NAME];

    if (t->file >= 0)
        close(t->file);
    t->file = -1;
    t->in_manifest = false;
    if (m->type == TAR_FOLDER)
        return name ? odd(t, names_add(&t->names, name + 1, true), "name") : NULL;
    for (const char *p = m->name; *p; p++)
        deep += *p == '/';
    if (m->type == TAR_OTHER || name == NULL || deep > PACKAGE_DEEP) /* beside its folder: not all unpack it */
        return odd(t, "odd", m->type == TAR_OTHER ? "kind" : name ? "deep" : "beside");
    const char *why = names_add(&t->names, name + 1, false);
    if (why)
        return odd(t, why, "name");
    if (t->u->n == PACKAGE_FILES_MAX || m->size > PACKAGE_BYTES_MAX - t->bytes)
        return "large";
    struct entry *e = &t->u->entry[t->u->n];
    own_name(t->folder, t->u->n, own);
    if ((e->name = strdup(name + 1)) == NULL)
        return "failed";
    t->u->n++;
    e->mode = m->type != TAR_FILE ? LINK_MODE : m->mode & 0111 ? PROGRAM_MODE : FILE_MODE;
    t->bytes += m->size;
    t->file = open(own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (t->file < 0)
        return "failed";
    if (m->type != TAR_FILE)
        return link_take(t, m);
    t->in_manifest =
        strcmp(e->name, "package.json") == 0 && t->u->manifest == NULL && m->size <= PACKAGE_MANIFEST_MAX;
    if (t->in_manifest && (t->u->manifest = malloc(PACKAGE_MANIFEST_MAX)) == NULL)
        return "failed";
    return NULL;
}

/* Which part of it is read differently. */
static const char *tar_word(const char *why)
{
    static const struct {
        const char *begins, *word;
    } table[] = {
        {"a name in it", "path"}, {"a record", "record"}, {"the length", "record"}, {"an extended", "record"}};

    for (size_t i = 0; why && i < sizeof(table) / sizeof(table[0]); i++)
        if (strncmp(why, table[i].begins, strlen(table[i].begins)) == 0)
            return table[i].word;
    return "header";
}

static const char *bytes_take(struct taking *t, const uint8_t *p, size_t n)
{
    const char *error = NULL;

    while (n > 0 && !error) {
        size_t used = 0;
        enum tar_got got = t->ended ? TAR_END : tar_step(&t->tar, p, n, &used);
        p += used;
        n -= used;
        if (got == TAR_BAD)
            error = t->tar.odd ? odd(t, "odd", tar_word(t->tar.why)) : "damaged";
        else if (got == TAR_MEMBER)
            error = member_take(t);
        else if (got == TAR_DATA)
            error = content_add(t, t->tar.data, t->tar.ndata) ? NULL : "failed";
        else if (got == TAR_END) { /* zeros fill up its last record; what else is there some go on with */
            t->ended = true;
            for (; n > 0 && !error; p++, n--)
                error = *p ? "damaged" : NULL;
        }
    }
    return error;
}

/* --- all of it --------------------------------------------------------------------------------------- */

/* -2: it is not what npm takes for gzip. The program goes by other marks as well: a zip, compress, pack, lzh. */
static int gzip_open(const char *file)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    unsigned char mark[3] = "";

    if (fd >= 0 && pread(fd, mark, sizeof(mark), 0) == (ssize_t)sizeof(mark) && memcmp(mark, "\x1f\x8b\x08", 3) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : -2;
}

static const char *stream_take(struct taking *t, const char *file)
{
    static const char *const words[] = {"gzip", "-dc", NULL};
    static uint8_t bytes[STEP];
    const char *error = NULL;
    int fd = gzip_open(file), says = -1;
    uint64_t all = 0;
    ssize_t n = 0;

    if (fd == -2)
        return "damaged";
    pid_t pid = fd < 0 ? -1 : program_open(&says, fd, words);
    if (fd >= 0)
        close(fd);
    if (pid < 0)
        return "failed";
    while (!error && (n = read(says, bytes, sizeof(bytes))) > 0) {
        all += (uint64_t)n; /* with all that is no content of it */
        error = all > 2ull * PACKAGE_BYTES_MAX ? "large" : bytes_take(t, bytes, (size_t)n);
    }
    close(says);
    int status = program_over(pid);
    if (t->file >= 0)
        close(t->file);
    if (error)
        return error;
    return status == 127 ? "no-program" : status != 0 || n < 0 || !t->ended || t->u->n == 0 ? "damaged" : NULL;
}

/* Into git, all at once. */
static const char *objects_make(const char *folder, struct unpacked *u)
{
    static const char *const words[] = {"hash-object", "-w", "--no-filters", "--stdin-paths", NULL};
    struct git_said s = {0};
    char own[NAME], list[NAME];
    (void)snprintf(list, sizeof(list), "%s/list", folder);
    FILE *f = fopen(list, "we");
    bool good = f != NULL;

    for (size_t i = 0; i < u->n && good; i++) {
        own_name(folder, i, own);
        good = fprintf(f, "%s\n", own) > 0;
    }
    good &= f && fclose(f) == 0;
    int fd = good ? open(list, O_RDONLY | O_CLOEXEC) : -1;
    good = fd >= 0 && git_say(&s, u->n * DIFF_LINE_MAX, fd, words) == 0 && !s.cut && s.p;
    if (fd >= 0)
        close(fd);
    const char *at = s.p;
    for (size_t i = 0; i < u->n; i++) {
        size_t n = good ? strspn(at, "0123456789abcdef") : 0;
        good = good && (n == 40 || n == DIFF_ID_MAX) && at[n] == '\n';
        if (good)
            (void)snprintf(u->entry[i].id, sizeof(u->entry[i].id), "%.*s", (int)n, at);
        at += good ? n + 1 : 0;
    }
    said_free(&s);
    (void)unlink(list);
    return good ? NULL : "failed";
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

const char *package_unpack(const char *file, const char *folder, struct unpacked *u)
{
    static struct taking t;
    char own[NAME];

    t = (struct taking){.u = u, .folder = folder, .file = -1, .tar = {.strict = true}};
    *u = (struct unpacked){.entry = calloc(PACKAGE_FILES_MAX, sizeof(*u->entry))};
    if (!u->entry || (mkdir(folder, 0700) != 0 && access(folder, W_OK) != 0))
        return "failed";
    const char *error = stream_take(&t, file);
    const char *twice = error ? NULL : names_differ(&t.names);
    if (twice) {
        error = "twice"; /* the last one counts for some, and not for all */
        (void)snprintf(u->at, sizeof(u->at), "%s", twice);
    }
    names_free(&t.names);
    if (!error)
        error = objects_make(folder, u);
    for (size_t i = 0; i < u->n; i++) {
        own_name(folder, i, own);
        (void)unlink(own);
    }
    if (!error)
        qsort(u->entry, u->n, sizeof(*u->entry), by_name);
    return error;
}

void package_drop(struct unpacked *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->entry[i].name);
    free(u->entry);
    free(u->manifest);
    u->entry = NULL;
    u->manifest = NULL;
    u->n = u->nmanifest = 0;
}

/* --- what is different ---------------------------------------------------------------------------------- */

static void side(struct changed *c, int which, const struct entry *e)
{
    c->mode[which] = e ? e->mode : 0;
    (void)snprintf(c->id[which], sizeof(c->id[0]), "%s", e ? e->id : "0000000000000000000000000000000000000000");
}

static void change_add(struct changed *list, size_t *n, const struct entry *old, const struct entry *new)
{
    struct changed *c = &list[*n];

    if (old && new && old->mode == new->mode && strcmp(old->id, new->id) == 0)
        return;
    *c = (struct changed){.how = old && new ? 'M' : new ? 'A' : 'D', .path = new ? new->name : old->name};
    side(c, 0, old);
    side(c, 1, new);
    (*n)++;
}

/* The same bytes under another name are one file that moved. */
static void renames_find(struct changed *list, size_t *n)
{
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++)
        for (size_t k = 0; list[i].how == 'A' && k < *n; k++)
            if (list[k].how == 'D' && list[k].mode[0] == list[i].mode[1] &&
                strcmp(list[k].id[0], list[i].id[1]) == 0) {
                list[i].how = 'R';
                list[i].from = list[k].path;
                list[i].mode[0] = list[k].mode[0];
                memcpy(list[i].id[0], list[k].id[0], sizeof(list[i].id[0]));
                list[k].how = '\0';
            }
    for (size_t i = 0; i < *n; i++)
        if (list[i].how != '\0')
            list[kept++] = list[i];
    *n = kept;
}

struct changed *package_changes(const struct unpacked *old, const struct unpacked *new, size_t *n)
{
    size_t nold = old ? old->n : 0, i = 0, k = 0;
    struct changed *list = calloc(nold + new->n + 1, sizeof(*list)), first;

    *n = 0;
    while (list && (i < nold || k < new->n)) {
        int order = i == nold ? 1 : k == new->n ? -1 : strcmp(old->entry[i].name, new->entry[k].name);
        change_add(list, n, order <= 0 ? &old->entry[i] : NULL, order >= 0 ? &new->entry[k] : NULL);
        i += order <= 0;
        k += order >= 0;
    }
    if (!list)
        return NULL;
    renames_find(list, n);
    for (i = 0; i < *n; i++)
        if (strcmp(list[i].path, "package.json") == 0) {
            first = list[i];
            memmove(list + 1, list, i * sizeof(*list));
            list[0] = first;
        }
    return list;
}
