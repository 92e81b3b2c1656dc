/* A closed-loop HTTP/1.1 load generator for loopback: every connection sends its own list of requests, in order, one at a
 * time, and waits for each answer.
 *
 *   batch_load PORT CONNECTIONS REQUESTS SECONDS
 *
 * REQUESTS is a file of records, each: u32 connection, u32 length (little endian), then the bytes of one complete request.
 * SECONDS 0 sends every list once; otherwise the lists are repeated until that many seconds have passed. A run never takes
 * longer than LIMIT_SECONDS. Prints one JSON object: requests, ok, failed, seconds, requests per second, latencies in
 * microseconds. The first answer that is not 2xx is shown on standard error. Exit status 1 when a connection broke. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 180, MAX_CONNECTIONS = 256, MAX_SAMPLES = 8 << 20 };

struct request {
    const char *bytes;
    uint32_t length;
};

struct connection {
    int socket;
    struct request *requests;
    uint32_t count, next;
    uint32_t sent;
    int64_t started;
    char *answer;
    size_t used, room;
    int waiting_for_room;
};

static struct connection connections[MAX_CONNECTIONS];
static int connection_count, active, epoll;
static uint32_t *samples;
static uint32_t sample_count;
static uint64_t ok, failed;
static int error_shown;
static int64_t began, deadline;
static int repeat;

static void die(const char *what) {
    fprintf(stderr, "batch_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void watch(struct connection *c, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(epoll, operation, c->socket, &event)) die("epoll_ctl");
}

static void send_rest(struct connection *c) {
    struct request *r = &c->requests[c->next];
    while (c->sent < r->length) {
        ssize_t n = send(c->socket, r->bytes + c->sent, r->length - c->sent, MSG_NOSIGNAL);
        if (n > 0) {
            c->sent += (uint32_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            if (!c->waiting_for_room) watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            c->waiting_for_room = 1;
            return;
        } else if (n < 0 && errno != EINTR) {
            die("send");
        }
    }
    if (c->waiting_for_room) watch(c, EPOLLIN, EPOLL_CTL_MOD);
    c->waiting_for_room = 0;
}

/* Begins the connection's next request; closes the connection when it has none left or the time is over. */
static void begin(struct connection *c) {
    int64_t now = now_ns();
    if (repeat && c->next == c->count) c->next = 0;
    if (c->next == c->count || now >= deadline) {
        close(c->socket);
        active--;
        return;
    }
    c->sent = 0;
    c->used = 0;
    c->started = now;
    send_rest(c);
}

/* Length of the complete answer in the buffer, or 0 while it is incomplete. */
static size_t answer_length(struct connection *c) {
    char *end = memmem(c->answer, c->used, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - c->answer) + 4;
    long long body = -1;
    int chunked = 0;
    for (char *line = c->answer; line < end;) {
        char *stop = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        if (!strncasecmp(line, "content-length:", 15)) body = strtoll(line + 15, NULL, 10);
        if (!strncasecmp(line, "transfer-encoding: chunked", 26)) chunked = 1;
        line = stop + 2;
    }
    if (body >= 0) return c->used >= head + (size_t)body ? head + (size_t)body : 0;
    if (!chunked) {
        errno = EPROTO;
        die("an answer with neither content-length nor chunks");
    }
    for (size_t at = head;;) {
        char *stop = memmem(c->answer + at, c->used - at, "\r\n", 2);
        if (!stop) return 0;
        size_t size = strtoul(c->answer + at, NULL, 16);
        at = (size_t)(stop - c->answer) + 2 + size + 2;
        if (at > c->used) return 0;
        if (size == 0) return at;
    }
}

static void finish(struct connection *c) {
    int64_t latency = (now_ns() - c->started) / 1000;
    if (sample_count < MAX_SAMPLES) samples[sample_count++] = latency > UINT32_MAX ? UINT32_MAX : (uint32_t)latency;
    if (c->used > 12 && c->answer[9] == '2') {
        ok++;
    } else {
        failed++;
        if (!error_shown) fprintf(stderr, "batch_load: %.*s\n", (int)(c->used < 900 ? c->used : 900), c->answer);
        error_shown = 1;
    }
    c->next++;
    begin(c);
}

static void receive(struct connection *c) {
    for (;;) {
        if (c->room - c->used < 65536) {
            c->room = c->room * 2 + 65536;
            c->answer = realloc(c->answer, c->room + 1);
            if (!c->answer) die("realloc");
        }
        ssize_t n = recv(c->socket, c->answer + c->used, c->room - c->used, 0);
        if (n == 0) {
            errno = ECONNRESET;
            die("the server closed a connection");
        }
        if (n < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR) continue;
            die("recv");
        }
        c->used += (size_t)n;
        c->answer[c->used] = 0;
        size_t length = answer_length(c);
        if (length) {
            finish(c);
            return;
        }
    }
}

static void load_requests(const char *path) {
    int file = open(path, O_RDONLY);
    struct stat info;
    if (file < 0 || fstat(file, &info)) die(path);
    const char *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (bytes == MAP_FAILED) die(path);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; pass && i < connection_count; i++) {
            connections[i].requests = calloc(connections[i].count + 1, sizeof(struct request));
            connections[i].count = 0;
        }
        for (off_t at = 0; at + 8 <= info.st_size;) {
            uint32_t header[2];
            memcpy(header, bytes + at, 8);
            struct connection *c = &connections[header[0] % (uint32_t)connection_count];
            if (pass) c->requests[c->count] = (struct request){bytes + at + 8, header[1]};
            c->count++;
            at += 8 + header[1];
        }
    }
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t percentile(double share) {
    return sample_count ? samples[(uint32_t)(share * (sample_count - 1))] : 0;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: batch_load PORT CONNECTIONS REQUESTS SECONDS\n");
        return 2;
    }
    connection_count = atoi(argv[2]);
    if (connection_count < 1 || connection_count > MAX_CONNECTIONS) {
        fprintf(stderr, "batch_load: connections must be 1 to %d\n", MAX_CONNECTIONS);
        return 2;
    }
    samples = malloc(sizeof(uint32_t) * MAX_SAMPLES);
    load_requests(argv[3]);
    double seconds = atof(argv[4]);
    repeat = seconds > 0;
    epoll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        int on = 1;
        c->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&address, sizeof address)) die("connect");
        setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(c->socket, F_SETFL, O_NONBLOCK);
        watch(c, EPOLLIN, EPOLL_CTL_ADD);
    }
    active = connection_count;
    began = now_ns();
    deadline = began + (int64_t)((repeat && seconds < LIMIT_SECONDS ? seconds : LIMIT_SECONDS) * 1e9);
    for (int i = 0; i < connection_count; i++) begin(&connections[i]);
    while (active > 0) {
        struct epoll_event events[MAX_CONNECTIONS];
        int n = epoll_wait(epoll, events, MAX_CONNECTIONS, 30000);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        if (n == 0) {
            errno = ETIMEDOUT;
            die("no answer for 30 seconds");
        }
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) send_rest(c);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c);
        }
    }
    double elapsed = (double)(now_ns() - began) / 1e9;
    qsort(samples, sample_count, sizeof *samples, by_value);
    printf("{\"requests\": %llu, \"ok\": %llu, \"failed\": %llu, \"seconds\": %.6f, \"per_second\": %.1f, "
           "\"p50_us\": %u, \"p90_us\": %u, \"p99_us\": %u, \"max_us\": %u}\n",
           (unsigned long long)(ok + failed), (unsigned long long)ok, (unsigned long long)failed, elapsed,
           (double)(ok + failed) / elapsed, percentile(0.5), percentile(0.9), percentile(0.99), percentile(1.0));
    return 0;
}
