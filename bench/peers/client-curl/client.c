// libcurl's multi interface with epoll, one reused easy handle for each connection.
// client URL CONNECTIONS SECONDS SECONDS_OF_WARM_UP BYTES_OF_BODY
#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

enum { events_max = 256 };

struct transfer {
  CURL* handle;
  size_t received;
};

static CURLM* multi;
static int events_fd;
static size_t body_bytes;
static uint64_t requests, failures;
static int64_t due_ns = -1;  // when libcurl's timer expires; -1 for never

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static double processor_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static size_t drop_body(char* data, size_t size, size_t count, void* user) {
  (void)data;
  ((struct transfer*)user)->received += size * count;
  return size * count;
}

static int watch(CURL* handle, curl_socket_t socket, int what, void* user, void* known) {
  (void)handle;
  (void)user;
  struct epoll_event event = {.data.fd = socket};
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(events_fd, EPOLL_CTL_DEL, socket, NULL);
    curl_multi_assign(multi, socket, NULL);
    return 0;
  }
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  epoll_ctl(events_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  curl_multi_assign(multi, socket, multi);
  return 0;
}

static int set_timer(CURLM* of, long timeout_ms, void* user) {
  (void)of;
  (void)user;
  due_ns = timeout_ms < 0 ? -1 : now_ns() + timeout_ms * INT64_C(1000000);
  return 0;
}

// Counts the ended transfers, and starts each again.
static void restart_ended(void) {
  int left;
  CURLMsg* message;
  while ((message = curl_multi_info_read(multi, &left)) != NULL) {
    struct transfer* transfer;
    long status = 0;
    CURL* handle = message->easy_handle;
    const CURLcode result = message->data.result;
    curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char**)&transfer);
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK || status != 200 || transfer->received != body_bytes) ++failures;
    ++requests;
    transfer->received = 0;
    curl_multi_remove_handle(multi, handle);
    curl_multi_add_handle(multi, handle);
  }
}

static void run_until(int64_t end_ns) {
  struct epoll_event events[events_max];
  int running;
  for (;;) {
    const int64_t now = now_ns();
    if (now >= end_ns) return;
    const int64_t next = due_ns >= 0 && due_ns < end_ns ? due_ns : end_ns;
    const int wait_ms = next <= now ? 0 : (int)((next - now + 999999) / 1000000);
    const int count = epoll_wait(events_fd, events, events_max, wait_ms);
    for (int index = 0; index < count; ++index) {
      const int bits = (events[index].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                       (events[index].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                       (events[index].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(multi, events[index].data.fd, bits, &running);
    }
    if (due_ns >= 0 && now_ns() >= due_ns) {
      due_ns = -1;
      curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    restart_ended();
  }
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int connections = atoi(argv[2]);
  body_bytes = (size_t)atoi(argv[5]);
  curl_global_init(CURL_GLOBAL_ALL);
  multi = curl_multi_init();
  events_fd = epoll_create1(EPOLL_CLOEXEC);
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)connections);
  struct transfer* transfers = calloc((size_t)connections, sizeof(struct transfer));
  for (int index = 0; index < connections; ++index) {
    CURL* handle = transfers[index].handle = curl_easy_init();
    curl_easy_setopt(handle, CURLOPT_URL, argv[1]);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfers[index]);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, &transfers[index]);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_multi_add_handle(multi, handle);
  }
  run_until(now_ns() + (int64_t)(atof(argv[4]) * 1e9));
  const uint64_t before = requests;
  const double processor = processor_seconds();
  run_until(now_ns() + (int64_t)(atof(argv[3]) * 1e9));
  printf("{\"requests\": %llu, \"failures\": %llu, \"processor_seconds\": %f}\n",
         (unsigned long long)(requests - before), (unsigned long long)failures,
         processor_seconds() - processor);
  return 0;
}
