/*
 * Many encoders in one process, over libsrt: each publishes the same recorded datagrams at the times they were recorded
 * with.
 *
 *   libsrt-publishers RECORDING CALLS
 *
 * RECORDING: per datagram its due time in microseconds and its length, 4 bytes each in the machine's order, then 1316
 * bytes. CALLS: a line for each encoder, "PORT START_US SURGE_US STREAMID": it begins START_US late, and from SURGE_US,
 * if that is not 0, it sends ten times as fast. All call 127.0.0.1.
 *
 * Prints "ready" once all are connected; then, when the recording ends or standard input is closed, one line of JSON:
 * what all of them sent, sent again and dropped, and how many connections broke.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <srt/srt.h>

enum { PAYLOAD_BYTES = 1316, MAX_CALLS = 1000, STREAMID_BYTES = 512, CALLS_PER_SOCKET = 25, SURGE_FACTOR = 10 };

struct datagram {
    uint32_t due_us;
    uint32_t length;
    char payload[PAYLOAD_BYTES];
};

struct call {
    SRTSOCKET socket;
    size_t next;
    uint32_t start_us;
    uint32_t surge_us;
    int broken;
};

static const struct datagram *recording;
static size_t datagrams;
static struct call calls[MAX_CALLS];
static int call_count;

static void fail(const char *what)
{
    fprintf(stderr, "libsrt-publishers: %s: %s\n", what, srt_getlasterror_str());
    exit(EXIT_FAILURE);
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void map_recording(const char *file)
{
    struct stat status;
    int descriptor = open(file, O_RDONLY);
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        fail(file);
    datagrams = (size_t)status.st_size / sizeof(struct datagram);
    recording = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (recording == MAP_FAILED)
        fail(file);
}

/* Libsrt runs threads for each UDP socket: callers share one where their local port is the same. */
static unsigned short local_port;

static SRTSOCKET call(unsigned short port, const char *stream_id)
{
    struct sockaddr_in address;
    int length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    SRTSOCKET socket = srt_create_socket();
    srt_setsockflag(socket, SRTO_STREAMID, stream_id, (int)strlen(stream_id));
    if (call_count % CALLS_PER_SOCKET == 0)
        local_port = 0;
    address.sin_port = local_port;
    if (srt_bind(socket, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
        fail("bind");
    if (srt_getsockname(socket, (struct sockaddr *)&address, &length) == SRT_ERROR)
        fail("bind");
    local_port = address.sin_port;

    address.sin_port = htons(port);
    if (srt_connect(socket, (struct sockaddr *)&address, sizeof address) == SRT_ERROR) {
        fprintf(stderr, "libsrt-publishers: refused with %d\n", srt_getrejectreason(socket));
        return SRT_INVALID_SOCK;
    }
    int blocking = 0;
    srt_setsockflag(socket, SRTO_SNDSYN, &blocking, sizeof blocking);
    return socket;
}

static void make_calls(const char *file)
{
    FILE *list = fopen(file, "r");
    unsigned port, start_us, surge_us;
    char stream_id[STREAMID_BYTES + 1];
    if (list == NULL)
        fail(file);
    while (call_count < MAX_CALLS && fscanf(list, "%u %u %u %512s", &port, &start_us, &surge_us, stream_id) == 4) {
        struct call *each = &calls[call_count];
        each->socket = call((unsigned short)port, stream_id);
        each->broken = each->socket == SRT_INVALID_SOCK;
        each->start_us = start_us;
        each->surge_us = surge_us;
        call_count++;
    }
    fclose(list);
}

/* Sends all that is due; false at the end of a recording. */
static int send_due(struct call *each, int64_t elapsed_us)
{
    if (each->surge_us > 0 && elapsed_us > each->surge_us)
        elapsed_us += (elapsed_us - each->surge_us) * (SURGE_FACTOR - 1);
    while (!each->broken) {
        if (each->next == datagrams)
            return 0;
        const struct datagram *datagram = &recording[each->next];
        if ((int64_t)datagram->due_us + each->start_us > elapsed_us)
            return 1;
        if (srt_sendmsg2(each->socket, datagram->payload, (int)datagram->length, NULL) == SRT_ERROR) {
            if (srt_getlasterror(NULL) == SRT_EASYNCSND)
                return 1;
            each->broken = 1;
        }
        each->next++;
    }
    return 1;
}

static int is_told_to_end(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&input, 1, 0) > 0;
}

static void report(void)
{
    long long sent = 0, sent_again = 0, dropped = 0;
    int broken = 0;
    for (int index = 0; index < call_count; index++) {
        SRT_TRACEBSTATS stats;
        broken += calls[index].broken;
        if (calls[index].socket == SRT_INVALID_SOCK || srt_bstats(calls[index].socket, &stats, 0) == SRT_ERROR)
            continue;
        sent += stats.pktSentUniqueTotal;
        sent_again += stats.pktRetransTotal;
        dropped += stats.pktSndDropTotal;
    }
    printf("{\"sent\":%lld,\"retransmissions\":%lld,\"dropped\":%lld,\"broken\":%d}\n", sent, sent_again, dropped, broken);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return EXIT_FAILURE;
    map_recording(argv[1]);
    srt_startup();
    srt_setloglevel(0);
    make_calls(argv[2]);
    printf("ready\n");
    fflush(stdout);

    int64_t begin_us = now_us();
    for (int running = 1; running && !is_told_to_end();) {
        int64_t elapsed_us = now_us() - begin_us;
        for (int index = 0; index < call_count; index++)
            running &= send_due(&calls[index], elapsed_us);
        usleep(1000);
    }
    report();
    for (int index = 0; index < call_count; index++)
        srt_close(calls[index].socket);
    srt_cleanup();
    return EXIT_SUCCESS;
}
