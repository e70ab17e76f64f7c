/* Feeds files to a fuzzer's entry without libFuzzer: each argument, or each file of a directory;
 * with no argument, $srcdir/tests/fuzz/corpus/NAME when the program is called replay_NAME. */
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *data = NULL;
    int done = -1;
    if (f == NULL || fstat(fileno(f), &st) != 0)
        goto out;
    data = malloc(st.st_size ? (size_t)st.st_size : 1);
    if (data == NULL || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
        goto out;
    (void)LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
    done = 0;
out:
    if (done)
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    if (f)
        (void)fclose(f);
    return done;
}

static int replay(const char *path, size_t *files)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        (*files)++;
        return replay_file(path);
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort), bad = 0;
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.') {
            (*files)++;
            bad |= replay_file(file);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n < 0 ? -1 : bad;
}

int main(int argc, char **argv)
{
    size_t files = 0;
    int bad = 0;
    char corpus[PATH_MAX];
    if (argc < 2) {
        const char *base = strrchr(argv[0], '/'), *top = getenv("srcdir");
        base = base ? base + 1 : argv[0];
        if (strncmp(base, "replay_", 7) != 0) {
            fprintf(stderr, "usage: %s FILE|DIRECTORY...\n", argv[0]);
            return 2;
        }
        snprintf(corpus, sizeof corpus, "%s/tests/fuzz/corpus/%s", top ? top : ".", base + 7);
        bad = replay(corpus, &files);
    }
    for (int i = 1; i < argc; i++)
        bad |= replay(argv[i], &files);
    printf("%zu files replayed\n", files);
    if (fuzz_reached != NULL && !fuzz_reached()) {
        fprintf(stderr, "not one of them got past the first check: the corpus is of another version\n");
        bad = -1;
    }
    return bad || files == 0 ? 1 : 0;
}
