/* cat FILE... */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments) {
    static char buffer[4096];
    for (int i = 1; i < count; i++) {
        int in = open(arguments[i], O_RDONLY);
        if (in < 0) return perror(arguments[i]), 1;
        ssize_t bytes;
        while ((bytes = read(in, buffer, sizeof buffer)) > 0)
            if (write(1, buffer, (size_t)bytes) != bytes) return perror("standard output"), 1;
        close(in);
    }
    return 0;
}
