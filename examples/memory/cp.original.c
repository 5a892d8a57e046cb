/* cp FROM TO */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 3) return 2;
    static char buffer[4096];
    int in = open(arguments[1], O_RDONLY);
    if (in < 0) return perror(arguments[1]), 1;
    int out = creat(arguments[2], 0644);
    if (out < 0) return perror(arguments[2]), 1;
    ssize_t bytes;
    while ((bytes = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, (size_t)bytes) != bytes) return perror(arguments[2]), 1;
    close(in);
    close(out);
    return 0;
}
