/* Runs a fuzz target over files, without a fuzzer: fuzz_replay_quote DIRECTORY|FILE…
 *
 * Every input goes in whole, then cut at an eighth, a half and seven eighths of it, and once with a
 * byte flipped at each of those places. The input lies in a block of exactly its size, so that a
 * sanitizer sees a read behind it. Fails when a directory has no file: a corpus that went missing
 * would otherwise pass.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

static void try_input(const uint8_t *data, size_t size, size_t flip)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        fail("memory");
    memcpy(copy, data, size);
    if (flip < size)
        copy[flip] ^= 0x20;
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);
    if (!file || !data || fread(data, 1, size, file) != size)
        fail(path);
    fclose(file);
    try_input(data, size, size);
    for (size_t eighths = 1; eighths < 8; eighths += 3) {
        const size_t at = size * eighths / 8;
        try_input(data, at, at);
        try_input(data, size, at);
    }
    free(data);
}

static int replay(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        fail(path);
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path, (size_t)status.st_size);
        return 1;
    }
    int count = 0;
    DIR *directory = opendir(path);
    if (!directory)
        fail(path);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char *name;
        if (entry->d_name[0] == '.')
            continue;
        if (asprintf(&name, "%s/%s", path, entry->d_name) < 0)
            fail("memory");
        count += replay(name);
        free(name);
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const int found = replay(argv[i]);
        if (!found)
            fprintf(stderr, "%s: there is no file in it\n", argv[i]);
        count = found ? count + found : -100000;
    }
    printf("%d files\n", count);
    return count > 0 ? 0 : 1;
}
