/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files of its corpus folder, where libFuzzer is not linked: every build,
 * sanitized or not, then meets every input that was ever worth keeping. Inputs are copied to exactly fitting
 * heap blocks, so that AddressSanitizer sees a read past their end. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    static uint8_t buffer[4 << 20];
    size_t len = fread(buffer, 1, sizeof(buffer), file);
    fclose(file);
    uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        abort();
    memcpy(exact, buffer, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    unsigned n = 1;
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 1;
    }
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        replay_file(path);
        n++;
    }
    closedir(dir);
    printf("[       OK ] %u inputs of %s\n", n, argv[1]);
    return 0;
}
