#include "proxy/keeper/sources/sources.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/keeper/sources/fetch.h"
#include "proxy/keeper/value.h"

struct file {
    enum source_kind kind;
    char path[SOURCES_PATH];
    size_t npath;
    int fd;
    struct timespec changed, modified;
    off_t size;
    struct secret *value; /* NULL: not read, or not usable as it is now */
    struct secret *previous[SOURCES_PREVIOUS];
};

struct sources {
    const struct vault *vault;
    struct fetches *fetches;
    unsigned owner;
    struct secret *env; /* NAME=value, NUL, NAME=value, NUL ... */
    struct files {
        struct digest policy;
        struct file *v[SOURCES_FILES];
        size_t n;
    } now, next; /* next: of a policy that is about to come */
};

void sources_store(struct sources *s, const struct vault *vault)
{
    s->vault = vault;
}

void sources_fetches(struct sources *s, struct fetches *f)
{
    s->fetches = f;
}

struct sources *sources_new(unsigned owner)
{
    struct sources *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->owner = owner;
    return s;
}

static void file_free(struct file *f)
{
    close(f->fd);
    secret_free(&f->value);
    for (size_t k = 0; k < SOURCES_PREVIOUS; k++)
        secret_free(&f->previous[k]);
    free(f);
}

static void files_free(struct files *l)
{
    for (size_t i = 0; i < l->n; i++)
        file_free(l->v[i]);
    *l = (struct files){.n = 0};
}

void sources_free(struct sources **s)
{
    if (s == NULL || *s == NULL)
        return;
    files_free(&(*s)->now);
    files_free(&(*s)->next);
    secret_free(&(*s)->env);
    free(*s);
    *s = NULL;
}

int sources_take_env(struct sources *s, char **environment, struct err *e)
{
    size_t n = 0, at = 0;
    int r = -1;
    for (char **v = environment; *v != NULL; v++)
        n += strlen(*v) + 1;
    if (n > SOURCES_ENV_MAX)
        err_set(e, "the environment is larger than %d bytes; start the gateway with less of it", SOURCES_ENV_MAX);
    else if ((s->env = secret_room(n)) == NULL)
        err_set(e, "out of memory");
    else
        r = 0;
    for (char **v = environment; *v != NULL; v++) {
        size_t len = strlen(*v);
        if (r == 0)
            memcpy(secret_fill(s->env) + at, *v, len + 1);
        at += len + 1;
        explicit_bzero(*v, len); /* else /proc/self/environ and a core would have it still */
    }
    environment[0] = NULL;
    return r;
}

static struct span env_find(const struct sources *s, struct span name)
{
    struct span rest = secret_bytes(s->env), one, key, value;
    while (rest.n && span_cut(rest, '\0', &one, &rest))
        if (span_cut(one, '=', &key, &value) && key.n && span_eq(key, name))
            return value;
    return SPAN_NONE;
}

static void retire(struct file *f)
{
    if (f->value == NULL)
        return;
    secret_free(&f->previous[SOURCES_PREVIOUS - 1]);
    memmove(&f->previous[1], &f->previous[0], sizeof(f->previous) - sizeof(f->previous[0]));
    f->previous[0] = f->value;
    f->value = NULL;
}

static struct file *find(const struct files *l, enum source_kind kind, struct span path)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i]->kind == kind && span_eq(span_of(l->v[i]->path, l->v[i]->npath), path))
            return l->v[i];
    return NULL;
}

int sources_add_file(struct sources *s, const struct digest *policy, enum source_kind kind, struct span path, int fd,
                     struct err *e)
{
    struct files *l = &s->next;
    if (memcmp(&l->policy, policy, sizeof(*policy)) != 0)
        files_free(l);
    l->policy = *policy;
    struct file *f = find(l, kind, path);
    if (f != NULL) { /* of two credentials */
        close(f->fd);
        f->fd = fd;
        return 0;
    }
    f = l->n < SOURCES_FILES && path.n <= sizeof(f->path) ? calloc(1, sizeof(*f)) : NULL;
    if (f == NULL) {
        close(fd);
        return err_set(e, "more than %d files are sources of credentials, or no memory", SOURCES_FILES);
    }
    f->kind = kind;
    memcpy(f->path, path.p, path.n);
    f->npath = path.n;
    f->fd = fd;
    f->size = -1; /* read it when it is asked for */
    l->v[l->n++] = f;
    return 0;
}

/* What the same file held before may still be echoed. */
static void inherit(struct file *to, struct file *from)
{
    if (from->value != NULL)
        retire(from);
    for (size_t k = 0; k < SOURCES_PREVIOUS; k++) {
        to->previous[k] = from->previous[k];
        from->previous[k] = NULL;
    }
}

void sources_switch(struct sources *s, const struct digest *policy)
{
    struct files old = s->now;
    bool fits = memcmp(&s->next.policy, policy, sizeof(*policy)) == 0;
    if (!fits)
        files_free(&s->next);
    s->now = s->next;
    s->next = (struct files){.n = 0};
    for (size_t i = 0; i < s->now.n; i++) {
        struct file *before = find(&old, s->now.v[i]->kind, span_of(s->now.v[i]->path, s->now.v[i]->npath));
        if (before != NULL)
            inherit(s->now.v[i], before);
    }
    files_free(&old);
}

/* The group's bits of one of systemd's are the mask of an access list, which names the unit's user. */
int sources_file_ok(enum source_kind kind, unsigned owner, const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return err_set(e, "its source is not a regular file");
    if ((st->st_mode & (kind == SOURCE_SYSTEMD ? 037u : 077u)) != 0)
        return err_set(e, "its file has mode %04o, so others may read it; chmod 600 it, and think of rotating it",
                       (unsigned)st->st_mode & 07777);
    if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != owner)
        return err_set(e, "its file belongs to uid %u, who is neither root nor the gateway", st->st_uid);
    return 0;
}

static int file_check(const struct sources *s, const struct file *f, const struct stat *st, struct err *e)
{
    if (sources_file_ok(f->kind, s->owner, st, e) != 0)
        return -1;
    if (st->st_nlink == 0)
        return err_set(e, "its file was deleted or replaced by another; reload the policy to open the new one");
    if (st->st_size > VALUE_MAX + 2)
        return err_set(e, "its file is longer than %d bytes", VALUE_MAX);
    return 0;
}

static bool same(const struct file *f, const struct stat *st)
{
    return f->size == st->st_size && f->modified.tv_sec == st->st_mtim.tv_sec &&
           f->modified.tv_nsec == st->st_mtim.tv_nsec && f->changed.tv_sec == st->st_ctim.tv_sec &&
           f->changed.tv_nsec == st->st_ctim.tv_nsec;
}

static int file_read(struct file *f, struct err *e)
{
    struct stat st;
    struct secret *room = secret_room(VALUE_MAX + 3);
    if (room == NULL)
        return err_set(e, "out of memory");
    int r = -1;
    ssize_t n = pread(f->fd, secret_fill(room), VALUE_MAX + 3, 0);
    if (n < 0 || fstat(f->fd, &st) != 0) {
        err_errno(e, "its file cannot be read");
    } else if (!same(f, &st) || n != st.st_size) {
        err_set(e, "its file changed while it was read; try again");
        f->size = -1;
    } else {
        struct span v = value_trim(span_of(secret_fill(room), (size_t)n));
        if (value_check(v, e) == 0 && (f->value = secret_new(v)) != NULL)
            r = 0;
    }
    secret_free(&room);
    return r;
}

/* Read again when anything about the file changed; what it was is kept for the scrubber. */
static struct secret *file_value(const struct sources *s, struct file *f, struct err *e)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0) {
        err_errno(e, "its file cannot be looked at");
        return NULL;
    }
    if (file_check(s, f, &st, e) != 0) {
        retire(f);
        f->size = -1;
        return NULL;
    }
    if (!same(f, &st) || f->value == NULL) {
        retire(f);
        f->size = st.st_size;
        f->modified = st.st_mtim;
        f->changed = st.st_ctim;
        if (file_read(f, e) != 0)
            return NULL;
    }
    return secret_new(secret_bytes(f->value));
}

struct secret *sources_stored(struct sources *s, enum source_kind kind, struct span where, struct err *e)
{
    struct secret *v = NULL;
    struct file *f;
    struct span env;
    err_set(e, "out of memory");
    switch (kind) {
    case SOURCE_FILE:
    case SOURCE_SYSTEMD:
        if ((f = find(&s->now, kind, where)) != NULL)
            v = file_value(s, f, e);
        else
            err_set(e, "%s",
                    kind == SOURCE_FILE ? "its file could not be opened"
                                        : "systemd gave the gateway no credential of that name");
        break;
    case SOURCE_ENV:
        env = env_find(s, where);
        if (env.p == NULL)
            err_set(e, "its variable was not set when the gateway started");
        else if (value_check(env, e) == 0)
            v = secret_new(env);
        break;
    case SOURCE_STORE:
        if (s->vault == NULL || (v = vault_get(s->vault, where)) == NULL)
            err_set(e, "nothing of that name is in the store; `countersign secret set` puts it there");
        break;
    default: err_set(e, "the policy names no source for it"); break;
    }
    return v;
}

struct secret *sources_value(struct sources *s, const struct credential *c, struct err *e)
{
    struct err why = {{0}};
    struct secret *v = !policy_source_is_asked(c->source) ? sources_stored(s, c->source, c->source_arg, &why)
                       : s->fetches != NULL               ? fetch_value(s->fetches, c, &why)
                                                          : NULL;
    if (v == NULL)
        err_set(e, "credential %.*s: %s", SPAN_FMT(c->name), why.text[0] ? why.text : "it was not fetched yet");
    return v;
}

struct secret *sources_previous(const struct sources *s, const struct credential *c, size_t i)
{
    if (c->source == SOURCE_STORE && s->vault != NULL)
        return vault_previous(s->vault, c->source_arg, i);
    if (policy_source_is_asked(c->source))
        return s->fetches != NULL ? fetch_previous(s->fetches, c, i) : NULL;
    bool of_file = c->source == SOURCE_FILE || c->source == SOURCE_SYSTEMD;
    const struct file *f = of_file ? find(&s->now, c->source, c->source_arg) : NULL;
    return f && i < SOURCES_PREVIOUS && f->previous[i] ? secret_new(secret_bytes(f->previous[i])) : NULL;
}
