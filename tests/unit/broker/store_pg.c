#include "tests/unit/broker/store_pg.h"

#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit.h"

enum { NOBODY = 65534, PATIENCE_MS = 300 * 1000, LOOK_MS = 5, ROOM = 512 << 20 };
static const char bin[] = "/usr/lib/postgresql/15/bin";

char pg_url[160];
static char folder[64];
static pid_t server;
static PGconn *admin;

/* argv[0] becomes its path: PostgreSQL looks for its other programs where that says it is, else along PATH. */
static pid_t as_nobody(const char *program, const char *argv[])
{
    char path[128];
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    snprintf(path, sizeof(path), "%s/%s", bin, program);
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(126);
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* it ends with the test, whatever becomes of that */
    if (freopen("/dev/null", "w", stdout) == NULL || chdir(folder) != 0)
        _exit(126);
    if (freopen("log", "a", stderr) == NULL)
        _exit(126);
    argv[0] = path;
    execv(path, (char *const *)argv);
    _exit(127);
}

static void serve(void)
{
    char data[96], sockets[96];
    snprintf(data, sizeof(data), "%s/data", folder);
    snprintf(sockets, sizeof(sockets), "unix_socket_directories=%s", folder);
    const char *argv[] = {"postgres",
                          "-D",
                          data,
                          "-c",
                          sockets,
                          "-c",
                          "listen_addresses=",
                          "-c",
                          "fsync=off",
                          "-c",
                          "shared_buffers=16MB",
                          "-c",
                          "max_connections=40",
                          "-c",
                          "deadlock_timeout=100ms",
                          "-c",
                          "autovacuum=off",
                          "-c",
                          "restart_after_crash=on",
                          NULL};
    server = as_nobody("postgres", argv);
}

static PGconn *connection(void)
{
    char where[160];
    snprintf(where, sizeof(where), "host=%s user=postgres dbname=postgres", folder);
    for (int i = 0; i < PATIENCE_MS / LOOK_MS; i++) {
        PGconn *c = PQconnectdb(where);
        if (PQstatus(c) == CONNECTION_OK)
            return c;
        PQfinish(c);
        if (waitpid(server, NULL, WNOHANG) == server)
            fail_msg("PostgreSQL has ended: see %s/log", folder);
        (void)poll(NULL, 0, LOOK_MS);
    }
    fail_msg("PostgreSQL does not serve");
    return NULL;
}

/* Memory, where it has room for a database and its log; a container's often has not. */
static const char *base(void)
{
    struct statvfs v;
    bool roomy =
        access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize >= ROOM;
    return roomy ? "/dev/shm" : "/tmp";
}

void pg_start(void)
{
    char data[96];
    int status;
    snprintf(folder, sizeof(folder), "%s/cs-pg-XXXXXX", base());
    assert_non_null(mkdtemp(folder));
    if (geteuid() == 0)
        assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    snprintf(data, sizeof(data), "%s/data", folder);
    const char *argv[] = {"initdb",     "-N", "-A",   "trust", "-U", "postgres",
                          "--locale=C", "-E", "UTF8", "-D",    data, NULL};
    pid_t made = as_nobody("initdb", argv);
    assert_int_equal(waitpid(made, &status, 0), made);
    if (status != 0)
        fail_msg("initdb failed (is postgresql-15 installed? conf/need test): see %s/log", folder);
    serve();
    admin = connection();
    size_t n = (size_t)snprintf(pg_url, sizeof(pg_url), "postgresql://postgres@");
    for (const char *s = folder; *s != '\0'; s++)
        n += (size_t)snprintf(pg_url + n, sizeof(pg_url) - n, *s == '/' ? "%%2F" : "%c", *s);
    snprintf(pg_url + n, sizeof(pg_url) - n, "/postgres");
}

static void end(void)
{
    if (server == 0)
        return;
    (void)kill(server, SIGQUIT);
    assert_int_equal(waitpid(server, NULL, 0), server);
    server = 0;
}

void pg_stop(void)
{
    char command[128];
    PQfinish(admin);
    admin = NULL;
    end();
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

void pg_down(void)
{
    PQfinish(admin);
    admin = NULL;
    end();
}

void pg_restart(void)
{
    pg_down();
    serve();
}

static PGresult *said(const char *sql)
{
    if (admin == NULL)
        admin = connection();
    PGresult *r = PQexec(admin, sql);
    ExecStatusType s = PQresultStatus(r);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(admin));
    return r;
}

void pg_exec(const char *sql)
{
    PQclear(said("SET client_min_messages=error"));
    PQclear(said("SET search_path=pg_catalog,countersign_broker"));
    PQclear(said(sql));
}

int pg_one(const char *sql, char *out, size_t cap)
{
    PQclear(said("SET search_path=pg_catalog,countersign_broker"));
    PGresult *r = said(sql);
    int there = PQntuples(r) > 0;
    if (there)
        snprintf(out, cap, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
    return there;
}

void pg_empty(void)
{
    char there[8];
    if (!pg_one("SELECT 1 FROM pg_namespace WHERE nspname='countersign_broker'", there, sizeof(there)))
        return;
    pg_exec("DELETE FROM writer; DELETE FROM tenant; DELETE FROM served; DELETE FROM conversation; DELETE FROM turn;"
            "DELETE FROM step; DELETE FROM tool_call; DELETE FROM message; DELETE FROM display; DELETE FROM chat_key;"
            "DELETE FROM recorded; DELETE FROM recorded_size; DELETE FROM usage");
}

#define OTHERS "FROM pg_stat_activity WHERE pid<>pg_backend_pid() AND backend_type='client backend'"

void pg_quiet(void)
{
    char n[32] = "";
    for (int i = 0; i < PATIENCE_MS / LOOK_MS && strcmp(n, "0") != 0; i++) {
        if (i > 0)
            (void)poll(NULL, 0, LOOK_MS);
        assert_true(pg_one("SELECT count(*) " OTHERS, n, sizeof(n)));
    }
    assert_string_equal(n, "0");
}

void pg_lose(void)
{
    char lost[4096];
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
        socklen_t n = sizeof(peer);
        if (fd == PQsocket(admin) || getpeername(fd, (struct sockaddr *)&peer, &n) != 0 ||
            peer.sun_family != AF_UNIX || strstr(peer.sun_path, ".s.PGSQL.") == NULL)
            continue;
        while (recv(fd, lost, sizeof(lost), MSG_DONTWAIT) > 0)
            ;
        (void)shutdown(fd, SHUT_RDWR);
    }
}

void pg_cut(void)
{
    PQclear(said("SELECT pg_terminate_backend(pid) " OTHERS));
}
