/* ftpget PORT FILE TO: downloads a file from a server on this host. */
#include <fcntl.h>

#include "ftp.h"

int main(int count, char **arguments) {
    if (count != 4) return 2;
    static char buffer[4096];
    size_t bytes;
    int control, in = ftp_retrieve(arguments[1], arguments[2], &bytes, &control);
    int out = creat(arguments[3], 0644);
    if (out < 0) return perror(arguments[3]), 1;
    ssize_t got;
    while ((got = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, (size_t)got) != got) return perror(arguments[3]), 1;
    close(out);
    close(in);
    close(control);
    return 0;
}
