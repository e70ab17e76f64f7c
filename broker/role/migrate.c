#include "broker/role/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/store/move/move.h"
#include "broker/store/postgres/postgres.h"
#include "broker/store/sqlite/sqlite.h"
#include "common/log.h"

enum { PATH = 1024 };

/* One end of it: a file, or a PostgreSQL. */
struct side {
    const char *said;
    bool file;
    char path[PATH];
    struct pg_where where;
    char password[PG_PASSWORD_MAX + 1];
    size_t password_n;
    struct bstore *store;
    enum bstore_state state;
};

struct order {
    bool dry;
    struct side from, to;
};

static int usage(void)
{
    (void)fprintf(
        stderr,
        "usage: countersign-broker migrate [--dry-run] [--from-password FILE] [--to-password FILE] FROM TO\n"
        "FROM, TO: sqlite:/PATH/broker.db, or postgresql://USER@HOST:PORT/DATABASE as in countersign.yaml(5)\n");
    return 2;
}

static int refuse(const char *what, const char *why)
{
    (void)fprintf(stderr, "countersign-broker: migrate: %s: %s\n", what, why);
    return 1;
}

static int take_side(struct side *s, const char *said)
{
    struct err e;
    s->said = said;
    s->file = strncmp(said, "sqlite:", 7) == 0;
    if (!s->file)
        return pg_where_read(span_str(said), &s->where, &e) == 0 ? 0 : refuse("a store cannot be read", e.text);
    if (said[7] != '/')
        return refuse(said, "say the whole path of the file, as sqlite:/PATH/broker.db");
    if (snprintf(s->path, sizeof(s->path), "%s", said + 7) >= (int)sizeof(s->path))
        return refuse(said, "the path is too long");
    return 0;
}

/* From a file that nobody else reads, and never from the command line, which others see. */
static int take_password(struct side *s, const char *file)
{
    struct stat st;
    if (file == NULL)
        return 0;
    if (s->file)
        return refuse(file, "a file of SQLite has no password");
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 ? read(fd, s->password, sizeof(s->password)) : -1;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return refuse(file, strerror(why));
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        return refuse(file, "it has to be a file that its owner alone can read: chmod 600");
    while (n > 0 && n <= PG_PASSWORD_MAX && (s->password[n - 1] == '\n' || s->password[n - 1] == '\r'))
        n--;
    if (n == 0 || n > PG_PASSWORD_MAX || memchr(s->password, '\0', (size_t)n) != NULL)
        return refuse(file, "it has no password, or one that is too long or has a zero byte in it");
    s->password_n = (size_t)n;
    return 0;
}

/* The broker's files are its own user's, and stay so. */
static int become_owner(const struct side *s)
{
    char dir[PATH];
    struct stat st;
    if (!s->file || geteuid() != 0)
        return 0;
    (void)snprintf(dir, sizeof(dir), "%s", s->path);
    *(strrchr(dir, '/') + 1) = '\0';
    if (stat(dir, &st) != 0)
        return refuse(dir, strerror(errno));
    if (st.st_uid != 0 && (setgroups(0, NULL) != 0 || setgid(st.st_gid) != 0 || setuid(st.st_uid) != 0))
        return refuse(dir, "its owner's rights cannot be taken on");
    return 0;
}

static int open_side(struct side *s, bool make)
{
    struct err e;
    if (s->file)
        s->store = bstore_sqlite_alone(s->path, make, NULL, &s->state, &e);
    else
        s->store = bstore_postgres_alone(&s->where, span_of(s->password, s->password_n), make, NULL, &s->state, &e);
    return s->store != NULL || e.text[0] == '\0' ? 0 : refuse(s->said, e.text);
}

static void show(const struct move_counts *n)
{
    char text[2 * DIGEST_BYTES + 1];
    for (size_t i = 0; i < MOVE_TABLES; i++) {
        hex_text(span_of(n->of[i].digest.b, DIGEST_BYTES), text);
        (void)printf("%-12s %10llu rows  sha256 %s\n", n->of[i].table, (unsigned long long)n->of[i].rows, text);
    }
}

static int may(const struct order *o, struct err *e)
{
    return move_may(o->from.store, o->from.state, o->to.store, o->to.state, e);
}

static int run(struct order *o)
{
    struct move_counts n;
    struct err e;
    if (open_side(&o->from, false) != 0)
        return 1;
    if (o->from.store == NULL)
        return refuse(o->from.said, "there is no store");
    if (open_side(&o->to, false) != 0)
        return 1;
    if (may(o, &e) != 0)
        return refuse("nothing was changed", e.text);
    if (o->to.store == NULL && !o->dry && (open_side(&o->to, true) != 0 || may(o, &e) != 0))
        return o->to.store != NULL ? refuse("nothing was moved", e.text) : 1;
    if ((o->dry ? move_count(o->from.store, &n, &e) : move_all(o->from.store, o->to.store, &n, &e)) != 0)
        return refuse(o->dry ? "nothing was changed" : "the move has not ended", e.text);
    show(&n);
    (void)printf(
        o->dry ? "nothing was changed: so much would be moved\n"
               : "moved and compared; say the new store as store: in countersign.yaml before a broker is started\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

int migrate(int argc, char *const argv[])
{
    static struct order o;
    const char *from_password = NULL, *to_password = NULL;
    int i = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--dry-run") == 0)
            o.dry = true;
        else if (strcmp(argv[i], "--from-password") == 0 && i + 1 < argc)
            from_password = argv[++i];
        else if (strcmp(argv[i], "--to-password") == 0 && i + 1 < argc)
            to_password = argv[++i];
        else
            return usage();
    }
    if (argc - i != 2)
        return usage();
    log_init("migrate", LOG_WARN);
    umask(077);
    /* What a library would take from there (PGOPTIONS, SSL_CERT_FILE) is said by nobody who moves a store. */
    if (clearenv() != 0 || setenv("HOME", "/nonexistent", 1) != 0)
        return refuse("the environment", "it cannot be cleared");
    if (take_side(&o.from, argv[i]) != 0 || take_side(&o.to, argv[i + 1]) != 0 ||
        take_password(&o.from, from_password) != 0 || take_password(&o.to, to_password) != 0 ||
        become_owner(o.to.file ? &o.to : &o.from) != 0)
        return 1;
    int r = run(&o);
    explicit_bzero(o.from.password, sizeof(o.from.password));
    explicit_bzero(o.to.password, sizeof(o.to.password));
    bstore_close(&o.from.store);
    bstore_close(&o.to.store);
    return r;
}
