/* The least of FTP: an anonymous login, passive mode, and a socket from which a file comes. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ftp_connect(unsigned port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int at = socket(AF_INET, SOCK_STREAM, 0);
    if (at < 0 || connect(at, (struct sockaddr *)&to, sizeof to)) {
        perror("connect");
        exit(1);
    }
    return at;
}

/* The answer to a command; a line with a blank behind its number ends it. */
static char *ftp_say(int control, const char *command, const char *argument) {
    static char answer[4096];
    char line[512];
    int length = snprintf(line, sizeof line, command, argument);
    if (length > 0 && write(control, line, (size_t)length) != length) exit(1);
    size_t got = 0;
    for (;;) {
        ssize_t more = read(control, answer + got, sizeof answer - 1 - got);
        if (more <= 0) exit(1);
        answer[got += (size_t)more] = 0;
        char *start = answer;
        for (char *end; (end = strchr(start, '\n')); start = end + 1)
            if (start[3] == ' ' && end[1] == 0) return answer;
    }
}

/* The data connection of a file, and its size. */
static int ftp_retrieve(const char *port, const char *file, size_t *bytes, int *control) {
    *control = ftp_connect((unsigned)atoi(port));
    ftp_say(*control, "", "");
    ftp_say(*control, "USER %s\r\n", "anonymous");
    ftp_say(*control, "PASS %s\r\n", "onode");
    ftp_say(*control, "TYPE %s\r\n", "I");
    char *size = ftp_say(*control, "SIZE %s\r\n", file);
    if (strncmp(size, "213 ", 4)) {
        fprintf(stderr, "%s: %s", file, size);
        exit(1);
    }
    *bytes = strtoul(size + 4, NULL, 10);
    char *passive = strchr(ftp_say(*control, "PASV\r\n%s", ""), '(');
    unsigned p[6];
    if (!passive || sscanf(passive, "(%u,%u,%u,%u,%u,%u)", p, p + 1, p + 2, p + 3, p + 4, p + 5) != 6) exit(1);
    int data = ftp_connect(p[4] << 8 | p[5]);
    ftp_say(*control, "RETR %s\r\n", file);
    return data;
}
