/* compress FROM TO: reads a file, compresses it in memory and writes the result. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lz.h"

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int in = open(arguments[1], O_RDONLY);
    struct stat about;
    if (in < 0 || fstat(in, &about)) return perror(arguments[1]), 1;
    size_t bytes = (size_t)about.st_size;
    uint8_t *from = malloc(bytes), *to = malloc(lz_bound(bytes));
    if (read(in, from, bytes) != (ssize_t)bytes) return perror(arguments[1]), 1;
    close(in);
    size_t packed = lz_compress(from, bytes, to);
    int out = creat(arguments[2], 0644);
    if (out < 0 || write(out, to, packed) != (ssize_t)packed) return perror(arguments[2]), 1;
    close(out);
    free(from);
    free(to);
    return 0;
}
