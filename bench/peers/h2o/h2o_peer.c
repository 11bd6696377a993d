// A server on libh2o, with the event loop of h2o: HTTP/1.1 and, by prior knowledge or ALPN, HTTP/2.
// One thread serves constant responses.
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

// Selects the event loop of h2o.
#define H2O_USE_LIBUV 0
#include <h2o.h>
#include <h2o/http1.h>
#include <h2o/http2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { backlog = 65535, accepts_per_turn = 64, hour_ms = 3600 * 1000, cached_sessions = 4096 };

static struct {
  int port;
  const char* certificate;
  const char* key;
} options;

static h2o_globalconf_t configuration;
static h2o_context_t context;
static h2o_accept_ctx_t accepting;

static void fail(const char* what) {
  fprintf(stderr, "h2o_peer: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void fail_in_openssl(const char* what) {
  fprintf(stderr, "h2o_peer: %s\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

// ---- Responses ----------------------------------------------------------------------------------

typedef struct {
  h2o_handler_t base;
  h2o_iovec_t body;
} text_handler;

static int answer(h2o_handler_t* self, h2o_req_t* request) {
  static h2o_generator_t generator = {NULL, NULL};
  if (!h2o_memis(request->method.base, request->method.len, H2O_STRLIT("GET"))) return -1;
  text_handler* handler = (text_handler*)self;
  request->res.status = 200;
  request->res.reason = "OK";
  request->res.content_length = handler->body.len;
  h2o_start_response(request, &generator);
  h2o_send(request, &handler->body, 1, H2O_SEND_STATE_FINAL);
  return 0;
}

static void add_text(h2o_hostconf_t* host, const char* path, const char* prefix, size_t bytes,
                     char padding) {
  h2o_pathconf_t* route = h2o_config_register_path(host, path, 0);
  text_handler* handler = (text_handler*)h2o_create_handler(route, sizeof(*handler));
  handler->base.on_req = answer;
  handler->body.base = malloc(bytes);
  if (handler->body.base == NULL) fail("malloc");
  handler->body.len = bytes;
  memset(handler->body.base, padding, bytes);
  memcpy(handler->body.base, prefix, strlen(prefix));
}

static void add_responses(void) {
  // The head of a response has 113 bytes over HTTP/1.1.
  h2o_hostconf_t* host =
      h2o_config_register_host(&configuration, h2o_iovec_init(H2O_STRLIT("default")), 65535);
  add_text(host, "/190", "Hello h2o", 190 - 113, '.');
  add_text(host, "/16k", "", 16 * 1024, 0);
  add_text(host, "/1m", "", 1024 * 1024, 0);
  add_text(host, "/", "Hello h2o", 128 - 113, '.');
}

// ---- Connections --------------------------------------------------------------------------------

static void on_accept(h2o_socket_t* listener, const char* error) {
  if (error != NULL) return;
  for (int count = 0; count < accepts_per_turn; ++count) {
    h2o_socket_t* socket = h2o_evloop_socket_accept(listener);
    if (socket == NULL) return;
    h2o_accept(&accepting, socket);
  }
}

static SSL_CTX* make_tls(void) {
  SSL_CTX* tls = SSL_CTX_new(TLS_server_method());
  if (tls == NULL) fail_in_openssl("the context");
  SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
  SSL_CTX_set_options(tls, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(tls, options.certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(tls, options.key, SSL_FILETYPE_PEM) != 1) {
    fail_in_openssl("the certificate");
  }
  SSL_CTX_set_session_id_context(tls, (const unsigned char*)"h2o", 3);
  SSL_CTX_sess_set_cache_size(tls, cached_sessions);
  h2o_ssl_register_alpn_protocols(tls, h2o_alpn_protocols);
  return tls;
}

static int start_listening(void) {
  const int yes = 1;
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)options.port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  if (descriptor < 0) fail("socket");
  if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(descriptor, (struct sockaddr*)&address, size) != 0 || listen(descriptor, backlog) != 0 ||
      getsockname(descriptor, (struct sockaddr*)&address, &size) != 0) {
    fail("the listening socket");
  }
  options.port = ntohs(address.sin_port);
  return descriptor;
}

static void parse_options(int argc, char** argv) {
  static const struct option known[] = {{"port", required_argument, NULL, 'p'},
                                        {"tls-cert", required_argument, NULL, 'c'},
                                        {"tls-key", required_argument, NULL, 'k'},
                                        {NULL, 0, NULL, 0}};
  for (int name; (name = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (name == 'p') options.port = atoi(optarg);
    if (name == 'c') options.certificate = optarg;
    if (name == 'k') options.key = optarg;
    if (name == '?') exit(2);
  }
}

static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char** argv) {
  parse_options(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();

  h2o_config_init(&configuration);
  configuration.server_name = h2o_iovec_init(H2O_STRLIT("h2o"));
  configuration.http1.req_timeout = configuration.http2.idle_timeout = hour_ms;
  add_responses();
  h2o_context_init(&context, h2o_evloop_create(), &configuration);
  accepting.ctx = &context;
  accepting.hosts = configuration.hosts;
  if (options.certificate != NULL) accepting.ssl_ctx = make_tls();

  h2o_socket_t* listener =
      h2o_evloop_socket_create(context.loop, start_listening(), H2O_SOCKET_FLAG_DONT_READ);
  h2o_socket_read_start(listener, on_accept);
  printf("listening on 127.0.0.1:%d\n", options.port);
  fflush(stdout);
  while (h2o_evloop_run(context.loop, INT32_MAX) == 0) {
  }
  return 0;
}
