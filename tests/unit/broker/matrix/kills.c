#include "tests/unit/broker/matrix/kills.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/store/postgres/words.h"
#include "tests/unit/broker/store_pg.h"

enum { OWN = 4, POINTS = OWN + SQL_MOVE_GET_TENANT, NO_POINT = POINTS, VAIN_MAX = 64 };
static const char *const names[POINTS] = {"BEGIN", "COMMIT", "SENT", "COMMITTED",
#define X(name, sql) #name,
                                          SQL_STATEMENTS(X)
#undef X
};
static const char *const lite[POINTS] = {"-", "-", "", "-",
#define X(name, sql) sql,
                                         SQL_STATEMENTS(X)
#undef X
};
static const char *const postgres[SQL_COUNT] = {
#define X(name, sql) [SQL_##name] = sql,
    PG_WORDS(X)
#undef X
};
/* Points that no turn comes to in here, with the test that has them. */
static const char *const elsewhere[] = {"LOG_CUT", "LOG_FIRST"}; /* a log of 20,000 events: test_store.c */

/* Shared with who is killed. */
static struct shared {
    bool hit[POINTS], of_kind[KILLS_KINDS][POINTS];
    bool done[POINTS][CALL_CLASSES][KILLS];
    bool closed;                /* a cell, by who was killed last */
    unsigned vain[KILLS_KINDS]; /* so often in turn nobody was killed at an open cell */
    unsigned killed[KILLS], cut, lost;
    bool cut_at[KILLS_KINDS], lost_at[KILLS_KINDS];
    enum bstore_result said;
    bool kept;
} * shared;

bool kills_on;
static bool dying; /* in the process that is killed */
static enum victim who;
static unsigned kind, classes;
static uint64_t chance;
static unsigned most; /* kills of each */

static uint64_t pick(uint64_t n)
{
    chance = chance * 6364136223846793005ull + 1442695040888963407ull;
    return (chance >> 33) % n;
}

static bool is_there(unsigned p)
{
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        if (strcmp(names[p], elsewhere[i]) == 0)
            return false;
    if (fix_postgres)
        return p < OWN || postgres[p - OWN] == NULL || postgres[p - OWN][0] != '\0';
    return lite[p][0] != '\0';
}

static unsigned point_of(const char *name)
{
    unsigned p = 0;
    while (p < POINTS && strcmp(names[p], name) != 0)
        p++;
    return p;
}

static bool open_cell(unsigned p, enum victim k)
{
    if (shared->killed[k] >= most)
        return false;
    for (unsigned c = 0; c < CALL_CLASSES; c++)
        if (classes & 1u << c && !shared->done[p][c][k])
            return true;
    return false;
}

static void close_cells(unsigned p, enum victim k)
{
    shared->killed[k]++;
    for (unsigned c = 0; c < CALL_CLASSES; c++)
        if (classes & 1u << c)
            shared->done[p][c][k] = true;
}

/* Once at each kind of change: the connection is cut off before its commit is sent, and nothing of it is kept; and
 * after it was done, and nobody says so. */
static bool cuts(const char *name)
{
    static bool now; /* this commit is none any more */
    char n[32];
    if (strcmp(name, "BEGIN") == 0)
        now = false;
    if (strcmp(name, "COMMIT") == 0 && !shared->cut_at[kind]) {
        shared->cut_at[kind] = true;
        shared->cut++;
        now = true;
        pg_cut();
        return true;
    }
    if (strcmp(name, "SENT") != 0 || now || shared->lost_at[kind])
        return false;
    shared->lost_at[kind] = true;
    shared->lost++;
    (void)pg_one("SELECT n FROM writer FOR UPDATE", n, sizeof(n)); /* it waits until that is over */
    pg_lose();
    return true;
}

static void at(void *arg, const char *name)
{
    static const enum victim others[] = {KILL_GATEWAY, KILL_SANDBOX, KILL_DATABASE};
    unsigned p = point_of(name);
    if (p == NO_POINT)
        return;
    shared->hit[p] = shared->of_kind[kind][p] = true;
    if (dying) {
        shared->kept |= strcmp(name, "SENT") == 0 || strcmp(name, "COMMITTED") == 0;
        if (!open_cell(p, who))
            return;
        close_cells(p, who);
        shared->closed = true;
        (void)kill(getpid(), SIGKILL);
    }
    if (fix_postgres && cuts(name))
        return;
    for (size_t i = 0; i < (fix_postgres ? 3 : 2); i++) {
        if (!open_cell(p, others[i]) || pick(most < KILLS_ALL ? 40 : 3) != 0)
            continue;
        close_cells(p, others[i]);
        if (others[i] == KILL_DATABASE)
            pg_restart();
        else
            world_cut(others[i] == KILL_SANDBOX);
        return;
    }
}

void kills_anew(unsigned of_each)
{
    most = of_each;
    if (shared == NULL)
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    memset(shared, 0, sizeof(*shared));
    fix_test.at = at;
    chance = 1;
}

bool kills_all(void)
{
    return most == KILLS_ALL;
}

void kills_begin(enum victim by, unsigned of, unsigned at_stake)
{
    assert_true(of < KILLS_KINDS);
    who = by;
    kind = of;
    classes = at_stake;
}

/* Where it has come to before, a cell is open: so it will be come to again. */
static bool is_open(void)
{
    for (unsigned p = 0; p < POINTS; p++)
        if (shared->of_kind[kind][p] && open_cell(p, who))
            return true;
    return false;
}

void kills_home(void)
{
    struct id id = fix_id(99);
    id_text(&id, fix->home);
}

static void open_store(void)
{
    fix = fix_open();
    kills_home();
}

bool kills_in(bool (*does)(void *arg), void *arg, enum bstore_result *said)
{
    int status;
    if (!is_open() || pick(2 + 4 * (uint64_t)shared->vain[kind]) != 0)
        return false;
    bstore_close(&fix); /* a connection is not taken through a fork */
    shared->said = BS_FAIL;
    shared->kept = shared->closed = false;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dying = true;
        open_store();
        if (!does(arg))
            _exit(1);
        shared->said = *said;
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("who was to be killed has ended by itself: %d", status);
    shared->vain[kind] = shared->closed ? 0 : shared->vain[kind] < VAIN_MAX ? shared->vain[kind] + 1 : VAIN_MAX;
    fix_quiet();
    open_store();
    *said = shared->kept || shared->said == BS_OK ? BS_OK : BS_FAIL;
    return true;
}

/* --- what there is of it ------------------------------------------------------------------ */

static const char *const killed_names[KILLS] = {"worker", "broker", "gateway", "sandbox", "database"};

/* Who is killed there; a point of what only workers do is none of who serves. */
static bool is_cell(unsigned p, enum victim k)
{
    bool by_worker = false, by_broker = false;
    for (unsigned i = 0; i < KILLS_KINDS; i++)
        if (shared->of_kind[i][p])
            *(i < SERVE_KINDS ? &by_worker : &by_broker) = true;
    return is_there(p) && (k == KILL_WORKER   ? by_worker
                           : k == KILL_BROKER ? by_broker
                                              : k != KILL_DATABASE || fix_postgres);
}

void kills_count(struct kills_sum *out)
{
    *out = (struct kills_sum){.points = 0};
    for (unsigned p = 0; p < POINTS; p++) {
        out->points += is_there(p);
        out->hit += is_there(p) && shared->hit[p];
        for (unsigned c = 0; c < CALL_CLASSES; c++)
            for (enum victim k = 0; k < KILLS; k++) {
                out->cells += is_cell(p, k);
                out->done += is_cell(p, k) && shared->done[p][c][k];
            }
    }
    memcpy(out->killed, shared->killed, sizeof(out->killed));
    out->cut = shared->cut;
    out->lost = shared->lost;
}

bool kills_missing(bool cells)
{
    bool any = false;
    for (unsigned p = 0; p < POINTS; p++) {
        if (is_there(p) != shared->hit[p]) {
            print_message("%s at %s\n", is_there(p) ? "nobody came by" : "somebody came by, who should not have,",
                          names[p]);
            any = true;
        }
        for (unsigned c = 0; cells && c < CALL_CLASSES; c++)
            for (enum victim k = 0; k < KILLS; k++)
                if (is_cell(p, k) && !shared->done[p][c][k]) {
                    print_message("at %s with %s at stake no %s was killed\n", names[p], call_class_name(c),
                                  killed_names[k]);
                    any = true;
                }
    }
    return any;
}
