/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7load - HTTP/1.1 load driver for measuring a proxy's CPU per request.
 *
 * One thread, epoll.  Closed loop (every connection always has one request in
 * flight) or open loop at a fixed rate (Poisson arrivals, latency counted from
 * the moment the request was due).  Plain TCP or TLS, keep-alive or one
 * connection per request, full or resumed TLS handshakes, GET or POST.
 *
 * The CPU time of the processes given with -P (or of one thread, PID/TID; cpu_us, with that of the proxy
 * core's ksoftirqd, ksoft_us) and of everything involved (all_us: also this program, the -Q processes and
 * every ksoftirqd) is read at the two ends of the measured window, by this program, so that CPU and request
 * counts cover the same interval.  One JSON object is printed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ST_OFF, ST_CONNECT, ST_TLS, ST_IDLE, ST_SEND, ST_HEAD, ST_BODY, ST_EOF };

struct conn {
    int fd;
    int state;
    int want_out;
    SSL *ssl;
    SSL_SESSION *sess;
    double due;  /* when the request in flight was due */
    size_t sent; /* request bytes written */
    size_t hlen; /* response head bytes held */
    uint64_t left;
    int ok;
    int next_idle;
    char head[4096];
};

static struct {
    const char *host, *path, *name, *pids, *others;
    int port, conns, post, tls, resume, close, big, idle;
    double dur, warm, rate;
} O = {.host = "127.0.0.1",
       .port = 8080,
       .conns = 64,
       .path = "/128",
       .name = "bench.test",
       .dur = 3,
       .warm = 0.5};

static struct conn *C;
static int ep, idle_head = -1;
static SSL_CTX *ctx;
static char *req;
static size_t reqlen;
static char big[262144];
static struct sockaddr_in sa;
static double t0;

static int measuring;
static uint64_t n_ok, n_err, n_bad, n_bytes, n_connect, n_resumed, n_reused;

/* arrivals waiting for a free connection (open loop) */
static double *aq;
static size_t aq_h, aq_t, aq_cap;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- latency histogram: 128 buckets per power of two of microseconds/16 ---- */
#define HB 7
static uint32_t hist[64 << HB];
static void h_add(double sec)
{
    uint64_t v = (uint64_t)(sec * 16e6);
    unsigned e = 0, idx;
    if (v >= (1u << HB)) {
        e = 63u - (unsigned)__builtin_clzll(v) - HB + 1;
        idx = (e << HB) + (unsigned)((v >> (e - 1)) & ((1u << HB) - 1));
    } else
        idx = (unsigned)v;
    if (idx < sizeof(hist) / sizeof(*hist))
        hist[idx]++;
}
static double h_q(double q)
{
    uint64_t tot = 0, c = 0, want;
    size_t i;
    for (i = 0; i < sizeof(hist) / sizeof(*hist); i++)
        tot += hist[i];
    want = (uint64_t)ceil(q * (double)tot);
    for (i = 0; i < sizeof(hist) / sizeof(*hist); i++) {
        c += hist[i];
        if (c >= want && hist[i]) {
            unsigned e = (unsigned)(i >> HB), m = i & ((1u << HB) - 1);
            double v = e ? (double)((uint64_t)((1u << HB) + m) << (e - 1)) : (double)m;
            return v / 16.0;
        }
    }
    return 0;
}

/* ---- CPU accounting ---- */
struct cpu {
    double run;         /* seconds on CPU, all threads (schedstat) */
    double ut, st;      /* tick-sampled split */
    uint64_t vcs, ivcs; /* context switches */
    long rss_kb;
};

/* one thread of the process, or all of them when task is 0 */
static void cpu_pid(int pid, int task, struct cpu *a)
{
    char p[320], b[1024];
    DIR *d;
    struct dirent *de;
    FILE *f;

    snprintf(p, sizeof(p), "/proc/%d/task", pid);
    d = opendir(p);
    if (d) {
        while ((de = readdir(d))) {
            unsigned long long r = 0;
            if (de->d_name[0] == '.' || (task && atoi(de->d_name) != task))
                continue;
            snprintf(p, sizeof(p), "/proc/%d/task/%s/schedstat", pid, de->d_name);
            if ((f = fopen(p, "r"))) {
                if (fscanf(f, "%llu", &r) == 1)
                    a->run += (double)r * 1e-9;
                fclose(f);
            }
            snprintf(p, sizeof(p), "/proc/%d/task/%s/status", pid, de->d_name);
            if ((f = fopen(p, "r"))) {
                while (fgets(b, sizeof(b), f)) {
                    if (!strncmp(b, "voluntary_ctxt_switches:", 24))
                        a->vcs += strtoull(b + 24, NULL, 10);
                    else if (!strncmp(b, "nonvoluntary_ctxt_switches:", 27))
                        a->ivcs += strtoull(b + 27, NULL, 10);
                }
                fclose(f);
            }
        }
        closedir(d);
    }
    snprintf(p, sizeof(p), "/proc/%d/stat", pid);
    if ((f = fopen(p, "r"))) {
        size_t n = fread(b, 1, sizeof(b) - 1, f);
        char *s;
        unsigned long ut = 0, st = 0;
        b[n] = 0;
        s = strrchr(b, ')');
        if (s && sscanf(s + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &ut, &st) == 2) {
            a->ut += (double)ut / (double)sysconf(_SC_CLK_TCK);
            a->st += (double)st / (double)sysconf(_SC_CLK_TCK);
        }
        fclose(f);
    }
    snprintf(p, sizeof(p), "/proc/%d/statm", pid);
    if ((f = fopen(p, "r"))) {
        long v, r;
        if (fscanf(f, "%ld %ld", &v, &r) == 2)
            a->rss_kb += r * (sysconf(_SC_PAGESIZE) / 1024);
        fclose(f);
    }
}

static void cpu_all(const char *s, struct cpu *a)
{
    memset(a, 0, sizeof(*a));
    while (s && *s) {
        const char *end = s + strcspn(s, "/,");
        cpu_pid(atoi(s), *end == '/' ? atoi(end + 1) : 0, a);
        s = strchr(end, ',');
        if (s)
            s++;
    }
}

/* the kernel's softirq threads: work of the proxy's sends that was put off lands there */
static int ksoft_pid[256], n_ksoft;
static void find_ksoft(void)
{
    DIR *d = opendir("/proc");
    struct dirent *de;
    while (d && (de = readdir(d))) {
        char p[320], b[64];
        FILE *f;
        int n;
        if (de->d_name[0] < '0' || de->d_name[0] > '9' || strlen(de->d_name) > 5)
            continue;
        snprintf(p, sizeof(p), "/proc/%s/comm", de->d_name);
        if (!(f = fopen(p, "r")))
            continue;
        if (fgets(b, sizeof(b), f) && sscanf(b, "ksoftirqd/%d", &n) == 1 && n >= 0 && n < 256) {
            ksoft_pid[n] = atoi(de->d_name);
            if (n >= n_ksoft)
                n_ksoft = n + 1;
        }
        fclose(f);
    }
    if (d)
        closedir(d);
}

static double ksoft_run(int core)
{
    struct cpu c = {0};
    int i;
    for (i = 0; i < n_ksoft; i++)
        if (ksoft_pid[i] && (core < 0 || core == i))
            cpu_pid(ksoft_pid[i], 0, &c);
    return c.run;
}

/* ---- connections ---- */
static void arm(struct conn *c, int out)
{
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = c};
    if (c->want_out == out)
        return;
    c->want_out = out;
    epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
}

static void go_idle(struct conn *c);
static void start_req(struct conn *c, double due);
static void io(struct conn *c);

static void drop(struct conn *c)
{
    if (c->ssl) {
        SSL_set_quiet_shutdown(c->ssl, 1);
        SSL_shutdown(c->ssl); /* or its session would be marked not resumable */
        SSL_free(c->ssl);
        c->ssl = NULL;
    }
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->state = ST_OFF;
}

static int new_sess(SSL *s, SSL_SESSION *sess)
{
    struct conn *c = SSL_get_app_data(s);
    if (c->sess)
        SSL_SESSION_free(c->sess);
    c->sess = sess;
    return 1;
}

static void dial(struct conn *c)
{
    int one = 1;
    struct epoll_event e;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        perror("l7load: socket");
        exit(1);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(c->fd, (void *)&sa, sizeof(sa)) && errno != EINPROGRESS) {
        n_err++;
        drop(c);
        return;
    }
    n_connect++;
    c->state = ST_CONNECT;
    c->want_out = 1;
    e.events = EPOLLIN | EPOLLOUT;
    e.data.ptr = c;
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
}

static ssize_t rx(struct conn *c, void *b, size_t n)
{
    if (c->ssl) {
        int r = SSL_read(c->ssl, b, (int)n), e;
        if (r > 0)
            return r;
        e = SSL_get_error(c->ssl, r);
        if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
            return -1;
        return e == SSL_ERROR_ZERO_RETURN || e == SSL_ERROR_SYSCALL || e == SSL_ERROR_SSL ? 0 : -2;
    }
    ssize_t r = recv(c->fd, b, n, 0);
    if (r < 0)
        return errno == EAGAIN ? -1 : -2;
    return r;
}

static int tx(struct conn *c)
{
    while (c->sent < reqlen) {
        ssize_t n;
        if (c->ssl) {
            n = SSL_write(c->ssl, req + c->sent, (int)(reqlen - c->sent));
            if (n <= 0) {
                int e = SSL_get_error(c->ssl, (int)n);
                if (e == SSL_ERROR_WANT_WRITE || e == SSL_ERROR_WANT_READ)
                    break;
                return -1;
            }
        } else {
            n = send(c->fd, req + c->sent, reqlen - c->sent, MSG_NOSIGNAL);
            if (n < 0) {
                if (errno == EAGAIN)
                    break;
                return -1;
            }
        }
        c->sent += (size_t)n;
    }
    if (c->sent == reqlen) {
        c->state = ST_HEAD;
        c->hlen = 0;
        arm(c, 0);
    } else
        arm(c, 1);
    return 0;
}

static void redial(struct conn *c)
{
    drop(c);
    if (O.rate > 0 || O.close == 2)
        go_idle(c);
    else {
        c->due = now();
        dial(c);
    }
}

/* a connection failed while a request was due on it */
static void fail(struct conn *c)
{
    if (measuring)
        n_err++;
    redial(c);
}

static void done(struct conn *c)
{
    if (measuring) {
        if (c->ok)
            n_ok++;
        else
            n_bad++;
        h_add(now() - c->due);
    }
    if (O.close) {
        c->state = ST_EOF;
        return;
    }
    go_idle(c);
}

/* the connection can take a request: give it one, or park it */
static void go_idle(struct conn *c)
{
    if (c->state != ST_OFF)
        c->state = ST_IDLE;
    if (O.idle)
        return;
    if (O.rate > 0) {
        if (aq_h != aq_t) {
            double d = aq[aq_h % aq_cap];
            aq_h++;
            start_req(c, d);
        } else {
            c->next_idle = idle_head;
            idle_head = (int)(c - C);
        }
    } else
        start_req(c, now());
}

static void start_req(struct conn *c, double due)
{
    c->due = due;
    if (c->state == ST_OFF) {
        dial(c);
        return;
    }
    c->state = ST_SEND;
    c->sent = 0;
    if (tx(c) < 0)
        fail(c);
}

static int head_done(struct conn *c, size_t upto, uint64_t *clen)
{
    char *p = c->head, *e = c->head + upto, *nl;
    int have = 0;
    c->ok = upto > 12 && c->head[9] == '2';
    while (p < e && (nl = memchr(p, '\n', (size_t)(e - p)))) {
        if (nl - p > 15 && !strncasecmp(p, "content-length:", 15)) {
            *clen = strtoull(p + 15, NULL, 10);
            have = 1;
        }
        p = nl + 1;
    }
    return have;
}

static void io(struct conn *c)
{
    ssize_t n;
    for (;;) {
        switch (c->state) {
        case ST_CONNECT: {
            int err = 0;
            socklen_t l = sizeof(err);
            getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &l);
            if (err) {
                fail(c);
                return;
            }
            if (O.tls) {
                c->ssl = SSL_new(ctx);
                SSL_set_app_data(c->ssl, c);
                SSL_set_fd(c->ssl, c->fd);
                SSL_set_connect_state(c->ssl);
                SSL_set_tlsext_host_name(c->ssl, "bench.test");
                if (O.resume && c->sess)
                    SSL_set_session(c->ssl, c->sess);
                c->state = ST_TLS;
                break;
            }
            c->state = ST_SEND;
            c->sent = 0;
            if (tx(c) < 0)
                fail(c);
            return;
        }
        case ST_TLS: {
            int r = SSL_do_handshake(c->ssl), e;
            if (r == 1) {
                if (SSL_session_reused(c->ssl))
                    n_resumed++;
                c->state = ST_SEND;
                c->sent = 0;
                if (tx(c) < 0) {
                    fail(c);
                    return;
                }
                return;
            }
            e = SSL_get_error(c->ssl, r);
            if (e == SSL_ERROR_WANT_READ)
                arm(c, 0);
            else if (e == SSL_ERROR_WANT_WRITE)
                arm(c, 1);
            else
                fail(c);
            return;
        }
        case ST_SEND:
            if (tx(c) < 0) {
                fail(c);
                return;
            }
            if (c->state == ST_SEND)
                return;
            break;
        case ST_HEAD: {
            char *end;
            uint64_t cl = 0;
            size_t hl, extra;
            n = rx(c, c->head + c->hlen, sizeof(c->head) - c->hlen);
            if (n == -1)
                return;
            if (n <= 0) {
                /* keep-alive connection closed under us before any byte: retry */
                fail(c);
                return;
            }
            c->hlen += (size_t)n;
            if (measuring)
                n_bytes += (uint64_t)n;
            end = memmem(c->head, c->hlen, "\r\n\r\n", 4);
            if (!end) {
                if (c->hlen == sizeof(c->head)) {
                    fail(c);
                    return;
                }
                break;
            }
            hl = (size_t)(end - c->head) + 4;
            if (!head_done(c, hl, &cl)) {
                fail(c);
                return;
            }
            extra = c->hlen - hl;
            if (extra >= cl) {
                done(c);
                if (c->state != ST_EOF)
                    return;
                break;
            }
            c->left = cl - extra;
            c->state = ST_BODY;
            break;
        }
        case ST_BODY:
            if (c->ssl)
                n = rx(c, big, sizeof(big));
            else {
                /* plain TCP: have the kernel drop the bytes, no copy */
                n = recv(c->fd, NULL, c->left < (8u << 20) ? c->left : (8u << 20), MSG_TRUNC);
                if (n < 0)
                    n = errno == EAGAIN ? -1 : -2;
            }
            if (n == -1)
                return;
            if (n <= 0) {
                fail(c);
                return;
            }
            if (measuring)
                n_bytes += (uint64_t)n;
            if ((uint64_t)n >= c->left) {
                c->left = 0;
                done(c);
                if (c->state != ST_EOF)
                    return;
            } else
                c->left -= (uint64_t)n;
            break;
        case ST_EOF:
            n = rx(c, big, sizeof(big));
            if (n == -1)
                return;
            if (n > 0)
                break;
            redial(c);
            return;
        case ST_IDLE:
            n = rx(c, big, sizeof(big));
            if (n == -1 || n > 0)
                return;
            /* closed while idle: take it off the idle list and reopen later */
            if (!O.idle && O.rate > 0) {
                int *pp = &idle_head, i = (int)(c - C);
                while (*pp >= 0 && *pp != i)
                    pp = &C[*pp].next_idle;
                if (*pp == i)
                    *pp = c->next_idle;
            }
            n_reused++;
            redial(c);
            return;
        default:
            return;
        }
    }
}

static void build_req(void)
{
    static const char *browser =
        "Accept-Language: en-GB,en;q=0.9,de;q=0.7\r\n"
        "Accept-Encoding: gzip, deflate, br, zstd\r\n"
        "Cache-Control: no-cache\r\n"
        "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: none\r\n"
        "Referer: https://bench.test/some/earlier/page?with=a&query=string\r\n"
        "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; _ga=GA1.1.1234567890.1700000000\r\n";
    size_t cap = 4096 + (size_t)(O.post > 0 ? O.post : 0), n;
    char cl[64] = "";
    req = malloc(cap);
    if (O.post)
        snprintf(cl, sizeof(cl), "Content-Type: text/plain\r\nContent-Length: %d\r\n", O.post);
    n = (size_t)snprintf(req, cap,
                         "%s %s HTTP/1.1\r\nHost: %s\r\n"
                         "User-Agent: Mozilla/5.0 (X11; Linux x86_64) l7load/1\r\nAccept: */*\r\n%s%s%s\r\n",
                         O.post ? "POST" : "GET", O.path, O.name, O.big ? browser : "", cl,
                         O.close == 1 ? "Connection: close\r\n" : "");
    if (O.post)
        memset(req + n, 'p', (size_t)O.post);
    reqlen = n + (size_t)O.post;
}

static void cpu0_line(int core, double *busy, double *soft)
{
    FILE *f = fopen("/proc/stat", "r");
    char b[512], tag[16];
    double hz = (double)sysconf(_SC_CLK_TCK);
    snprintf(tag, sizeof(tag), "cpu%d ", core);
    while (f && fgets(b, sizeof(b), f)) {
        unsigned long long u, n, s, i, w, q, sq, steal;
        if (strncmp(b, tag, strlen(tag)))
            continue;
        if (sscanf(b + strlen(tag), "%llu %llu %llu %llu %llu %llu %llu %llu", &u, &n, &s, &i, &w, &q, &sq,
                   &steal) == 8) {
            *busy = (double)(u + n + s + q + sq + steal) / hz;
            *soft = (double)(q + sq) / hz;
        }
    }
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    struct rlimit rl;
    struct epoll_event ev[512];
    struct cpu a = {0}, b = {0}, oa = {0}, ob = {0}, me0 = {0}, me1 = {0};
    double ks0 = 0, ks1 = 0, ka0 = 0, ka1 = 0;
    char self[16];
    double next_arrival = 0, tm = 0, te, m0 = 0, m1, busy0 = 0, busy1 = 0, soft0 = 0, soft1 = 0;
    int o, i, core = 0;
    uint64_t conn0 = 0, res0 = 0;

    while ((o = getopt(argc, argv, "a:p:c:d:w:r:u:H:P:Q:B:C:tRkxi")) != -1)
        switch (o) {
        case 'a':
            O.host = optarg;
            break;
        case 'p':
            O.port = atoi(optarg);
            break;
        case 'c':
            O.conns = atoi(optarg);
            break;
        case 'd':
            O.dur = atof(optarg);
            break;
        case 'w':
            O.warm = atof(optarg);
            break;
        case 'r':
            O.rate = atof(optarg);
            break;
        case 'u':
            O.path = optarg;
            break;
        case 'H':
            O.name = optarg;
            break;
        case 'P':
            O.pids = optarg;
            break;
        case 'Q':
            O.others = optarg;
            break;
        case 'B':
            O.post = atoi(optarg);
            break;
        case 'C':
            core = atoi(optarg);
            break;
        case 't':
            O.tls = 1;
            break;
        case 'R':
            O.resume = 1;
            break;
        case 'k':
            O.close = 1;
            break;
        case 'x':
            O.big = 1;
            break;
        case 'i':
            O.idle = 1;
            break;
        default:
            fprintf(stderr,
                    "usage: l7load [-a addr] [-p port] [-c conns] [-d secs] [-w warm-up secs] [-r "
                    "req/s] [-u path] [-H host name]\n"
                    "  [-P pid[/thread],..] [-Q other pids] [-C core] [-B POST bytes] [-t TLS] [-R resume] "
                    "[-k close per request]\n"
                    "  [-x browser-like headers] [-i hold idle connections]\n");
            return 2;
        }
    snprintf(self, sizeof(self), "%d", (int)getpid());
    find_ksoft();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1000UL);
    if (!getrlimit(RLIMIT_NOFILE, &rl)) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    sa.sin_family = AF_INET;
    sa.sin_port = htons((unsigned short)O.port);
    inet_pton(AF_INET, O.host, &sa.sin_addr);
    build_req();
    if (O.tls) {
        ctx = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        if (O.resume)
            SSL_CTX_sess_set_new_cb(ctx, new_sess);
    }
    ep = epoll_create1(EPOLL_CLOEXEC);
    C = calloc((size_t)O.conns, sizeof(*C));
    aq_cap = 1u << 20;
    aq = malloc(aq_cap * sizeof(*aq));
    srand48(42);
    t0 = now();
    for (i = 0; i < O.conns; i++) {
        C[i].fd = -1;
        if (O.idle || O.rate <= 0) {
            C[i].due = now();
            dial(&C[i]);
            if (O.idle && i % 64 == 63) { /* let the proxy accept in step */
                int k, n = epoll_wait(ep, ev, 512, 5);
                for (k = 0; k < n; k++)
                    io(ev[k].data.ptr);
            }
        } else
            go_idle(&C[i]);
    }
    next_arrival = now();
    tm = t0 + O.warm;
    te = tm + O.dur;
    for (;;) {
        double t = now();
        struct timespec ts;
        int n;
        if (!measuring && t >= tm) {
            cpu_all(O.pids, &a);
            cpu_all(O.others, &oa);
            cpu_all(self, &me0);
            ks0 = ksoft_run(core);
            ka0 = ksoft_run(-1);
            cpu0_line(core, &busy0, &soft0);
            measuring = 1;
            conn0 = n_connect;
            res0 = n_resumed;
            m0 = now();
            te = m0 + O.dur;
        }
        if (measuring && t >= te)
            break;
        if (O.rate > 0) {
            while (next_arrival <= t) {
                if (idle_head >= 0) {
                    struct conn *c = &C[idle_head];
                    idle_head = c->next_idle;
                    start_req(c, next_arrival);
                } else if (aq_t - aq_h < aq_cap) {
                    aq[aq_t % aq_cap] = next_arrival;
                    aq_t++;
                }
                next_arrival += -log(1.0 - drand48()) / O.rate;
            }
            t = next_arrival - now();
            if (t < 0)
                t = 0;
        } else
            t = 0.05;
        if (t > 0.05)
            t = 0.05;
        ts.tv_sec = 0;
        ts.tv_nsec = (long)(t * 1e9);
        n = epoll_pwait2(ep, ev, 512, &ts, NULL);
        for (i = 0; i < n; i++)
            io(ev[i].data.ptr);
    }
    m1 = now();
    cpu_all(O.pids, &b);
    cpu_all(O.others, &ob);
    cpu_all(self, &me1);
    ks1 = ksoft_run(core);
    ka1 = ksoft_run(-1);
    cpu0_line(core, &busy1, &soft1);
    {
        double reqs = (double)(n_ok + n_bad), run = b.run - a.run, ut = b.ut - a.ut, st = b.st - a.st;
        double us = ut + st > 0 ? run * ut / (ut + st) : 0, d = reqs > 0 ? reqs : 1;
        int open = 0;
        for (i = 0; i < O.conns; i++)
            open += C[i].fd >= 0 && C[i].state >= ST_IDLE;
        printf("{\"secs\":%.3f,\"ok\":%llu,\"bad\":%llu,\"err\":%llu,\"rps\":%.0f,\"MBps\":%.1f,"
               "\"cpu_us\":%.3f,\"ksoft_us\":%.3f,\"all_us\":%.3f,\"user_us\":%.3f,\"sys_us\":%.3f,\"util\":%"
               ".3f,"
               "\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,"
               "\"vcs\":%.3f,\"ivcs\":%.4f,\"core_us\":%.3f,\"soft_us\":%.3f,"
               "\"conns\":%llu,\"resumed\":%llu,\"open\":%d,\"rss_kb\":%ld}\n",
               m1 - m0, (unsigned long long)n_ok, (unsigned long long)n_bad, (unsigned long long)n_err,
               reqs / (m1 - m0), (double)n_bytes / 1e6 / (m1 - m0), (run + ks1 - ks0) * 1e6 / d,
               (ks1 - ks0) * 1e6 / d, (run + ob.run - oa.run + me1.run - me0.run + ka1 - ka0) * 1e6 / d,
               us * 1e6 / d, (run - us) * 1e6 / d, run / (m1 - m0), h_q(.5), h_q(.9), h_q(.99), h_q(.999),
               (double)(b.vcs - a.vcs) / d, (double)(b.ivcs - a.ivcs) / d, (busy1 - busy0) * 1e6 / d,
               (soft1 - soft0) * 1e6 / d, (unsigned long long)(n_connect - conn0),
               (unsigned long long)(n_resumed - res0), open, b.rss_kb);
    }
    fflush(stdout);
    if (O.idle) { /* hold until stdin closes, so that the caller can look at memory */
        char x;
        while (read(0, &x, 1) > 0)
            ;
    }
    return n_ok || O.idle ? 0 : 1;
}
