/* insmod FILE: loads a module into the kernel. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 2) return 2;
    int in = open(arguments[1], O_RDONLY);
    struct stat about;
    if (in < 0 || fstat(in, &about)) return perror(arguments[1]), 1;
    size_t bytes = (size_t)about.st_size;
    char *module = malloc(bytes);
    if (!module || read(in, module, bytes) != (ssize_t)bytes) return perror(arguments[1]), 1;
    close(in);
    if (syscall(SYS_init_module, module, bytes, "")) return perror("init_module"), 3;
    free(module);
    return 0;
}
