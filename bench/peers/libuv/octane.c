// A libuv server after Octane (libchannels). It parses nothing, counts requests by the empty lines
// that end their heads, and answers each request with the same bytes. It allocates a buffer per read
// and a block per batch of answers. Each core has a loop and a listening socket.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <uv.h>

enum { backlog = 65535, response_bytes_max = 4096, cores_max = 256 };

static struct {
  int port;
  int cores;
  int response_bytes;
} options = {.port = 0, .cores = 1, .response_bytes = 128};

static char response[response_bytes_max + 1];

static void check(int status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "octane: %s: %s\n", what, uv_strerror(status));
  exit(1);
}

static void* allocate(size_t size) {
  void* memory = malloc(size);
  if (memory == NULL) {
    fprintf(stderr, "octane: out of memory\n");
    exit(1);
  }
  return memory;
}

// ---- One connection -----------------------------------------------------------------------------

struct connection {
  uv_tcp_t stream;
  int matched;  // bytes of "\r\n\r\n" at the end of the received bytes
};

// The libuv request and its buffers, in one block.
struct batch {
  uv_write_t request;
  uv_buf_t buffers[];
};

static void free_connection(uv_handle_t* handle) {
  free(handle->data);
}

static void end(uv_handle_t* handle) {
  if (!uv_is_closing(handle)) uv_close(handle, free_connection);
}

static void after_write(uv_write_t* request, int status) {
  if (status < 0) end((uv_handle_t*)request->handle);
  free(request->data);
}

static void answer(uv_stream_t* stream, unsigned count) {
  struct batch* batch = allocate(sizeof(struct batch) + count * sizeof(uv_buf_t));
  batch->request.data = batch;
  for (unsigned index = 0; index < count; ++index) {
    batch->buffers[index] = uv_buf_init(response, (unsigned)options.response_bytes);
  }
  const int status = uv_write(&batch->request, stream, batch->buffers, count, after_write);
  if (status < 0) {
    free(batch);
    end((uv_handle_t*)stream);
  }
}

static unsigned count_requests(struct connection* connection, const char* data, size_t size) {
  static const char head_end[] = "\r\n\r\n";
  unsigned count = 0;
  int matched = connection->matched;
  for (size_t index = 0; index < size; ++index) {
    if (data[index] != head_end[matched]) {
      matched = data[index] == '\r';
    } else if (++matched == 4) {
      matched = 0;
      ++count;
    }
  }
  connection->matched = matched;
  return count;
}

static void on_allocate(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void)handle;
  *buffer = uv_buf_init(allocate(suggested), (unsigned)suggested);
}

static void on_read(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
  if (size < 0) {
    end((uv_handle_t*)stream);
  } else if (size > 0) {
    const unsigned count = count_requests(stream->data, buffer->base, (size_t)size);
    if (count > 0) answer(stream, count);
  }
  free(buffer->base);
}

// ---- One core -----------------------------------------------------------------------------------

static void on_connection(uv_stream_t* server, int status) {
  if (status < 0) return;
  struct connection* connection = allocate(sizeof(struct connection));
  connection->matched = 0;
  check(uv_tcp_init(server->loop, &connection->stream), "uv_tcp_init");
  connection->stream.data = connection;
  uv_stream_t* const stream = (uv_stream_t*)&connection->stream;
  if (uv_accept(server, stream) < 0) {
    end((uv_handle_t*)stream);
    return;
  }
  uv_tcp_nodelay(&connection->stream, 1);
  uv_read_start(stream, on_allocate, on_read);
}

// Returns the port.
static int start_listening(uv_loop_t* loop, uv_tcp_t* server, int port) {
  check(uv_tcp_init_ex(loop, server, AF_INET), "uv_tcp_init_ex");
  uv_os_fd_t descriptor;
  check(uv_fileno((uv_handle_t*)server, &descriptor), "uv_fileno");
  const int on = 1;
  if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    perror("octane: SO_REUSEPORT");
    exit(1);
  }
  struct sockaddr_in address;
  check(uv_ip4_addr("127.0.0.1", port, &address), "uv_ip4_addr");
  check(uv_tcp_bind(server, (struct sockaddr*)&address, 0), "uv_tcp_bind");
  check(uv_listen((uv_stream_t*)server, backlog, on_connection), "uv_listen");
  int size = sizeof address;
  check(uv_tcp_getsockname(server, (struct sockaddr*)&address, &size), "uv_tcp_getsockname");
  return ntohs(address.sin_port);
}

static void* serve(void* unused) {
  (void)unused;
  uv_loop_t loop;
  uv_tcp_t server;
  check(uv_loop_init(&loop), "uv_loop_init");
  start_listening(&loop, &server, options.port);
  uv_run(&loop, UV_RUN_DEFAULT);
  return NULL;
}

// ---- The program --------------------------------------------------------------------------------

static void parse_options(int count, char** arguments) {
  for (int index = 1; index + 1 < count; index += 2) {
    const int value = atoi(arguments[index + 1]);
    if (strcmp(arguments[index], "--port") == 0) options.port = value;
    if (strcmp(arguments[index], "--cores") == 0) options.cores = value;
    if (strcmp(arguments[index], "--response-bytes") == 0) options.response_bytes = value;
  }
  if (options.cores < 1 || options.cores > cores_max || options.response_bytes < 100 ||
      options.response_bytes > response_bytes_max) {
    fprintf(stderr, "octane: --port N --cores N --response-bytes N (100 to %d)\n",
            response_bytes_max);
    exit(2);
  }
}

// Makes a response of options.response_bytes with a padded body.
static void make_response(void) {
  static const char format[] =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n";
  int body = options.response_bytes;
  while (snprintf(NULL, 0, format, body) + body > options.response_bytes) --body;
  const int head = snprintf(response, sizeof response, format, body);
  memset(response + head, '.', (size_t)(options.response_bytes - head));
}

int main(int count, char** arguments) {
  parse_options(count, arguments);
  make_response();
  uv_loop_t* const loop = uv_default_loop();
  uv_tcp_t server;
  options.port = start_listening(loop, &server, options.port);
  for (int started = 1; started < options.cores; ++started) {
    pthread_t thread;
    check(-pthread_create(&thread, NULL, serve, NULL), "pthread_create");
  }
  printf("listening on 127.0.0.1:%d\n", options.port);
  fflush(stdout);
  return uv_run(loop, UV_RUN_DEFAULT);
}
