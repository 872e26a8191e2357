/*
 * Publishes standard input with libsrt, from an initial sequence number of one's own choice: no released program can.
 *
 *   isn-publisher PORT INITIAL_SEQUENCE_NUMBER LATENCY_MS [PASSPHRASE]
 *
 * Calls 127.0.0.1:PORT, and reads payloads of 1316 bytes. With a passphrase it encrypts with AES-256.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <srt/srt.h>

enum { PAYLOAD_BYTES = 1316 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, srt_getlasterror_str());
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return EXIT_FAILURE;
    struct sockaddr_in listener;
    memset(&listener, 0, sizeof listener);
    listener.sin_family = AF_INET;
    listener.sin_port = htons((unsigned short)atoi(argv[1]));
    listener.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int initial_sequence_number = (int)strtol(argv[2], NULL, 10);
    int latency_ms = atoi(argv[3]);

    srt_startup();
    SRTSOCKET caller = srt_create_socket();
    srt_setsockflag(caller, SRTO_LATENCY, &latency_ms, sizeof latency_ms);
    if (argc > 4) {
        int key_bytes = 32;
        srt_setsockflag(caller, SRTO_PBKEYLEN, &key_bytes, sizeof key_bytes);
        srt_setsockflag(caller, SRTO_PASSPHRASE, argv[4], (int)strlen(argv[4]));
    }
    if (srt_connect_debug(caller, (struct sockaddr *)&listener, sizeof listener, initial_sequence_number) == SRT_ERROR)
        return fail("connect");

    char payload[PAYLOAD_BYTES];
    while (fread(payload, 1, sizeof payload, stdin) == sizeof payload)
        if (srt_sendmsg2(caller, payload, sizeof payload, NULL) == SRT_ERROR)
            return fail("send");
    srt_close(caller);
    srt_cleanup();
    return EXIT_SUCCESS;
}
