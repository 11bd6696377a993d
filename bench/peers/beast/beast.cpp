// A Boost.Beast server after its example for fast servers: one thread per io_context, and headers
// in memory of the connection. Boost.JSON reads and writes a described structure.
#include <unistd.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/describe.hpp>
#include <boost/json/src.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace json = boost::json;
using boost::system::error_code;
// Includes the executor's type, as the documentation advises, to avoid indirect calls.
using Executor = asio::io_context::executor_type;
using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
using loop::Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

using Allocator = std::pmr::polymorphic_allocator<char>;
using Fields = http::basic_fields<Allocator>;
using Request = http::request<http::string_body, Fields>;

constexpr int backlog = 65535;
constexpr std::string_view text_type = "text/plain; charset=utf-8";
constexpr std::string_view json_type = "application/json";

/// The body of POST /ping and of its answer.
struct Ping {
  int sequence;
};
BOOST_DESCRIBE_STRUCT(Ping, (), (sequence))

/// The value of a Date header, updated once per second.
std::string_view date() {
  thread_local std::time_t second = 0;
  thread_local std::array<char, 32> text;
  thread_local std::size_t size = 0;
  const std::time_t now = std::time(nullptr);
  if (now != second) {
    std::tm parts;
    gmtime_r(&now, &parts);
    size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    second = now;
  }
  return {text.data(), size};
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(loop::Socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void read() {
    response_.reset();
    parser_.reset();
    memory_.release();
    parser_.emplace(std::piecewise_construct, std::make_tuple(), std::make_tuple(&memory_));
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (!error) self->answer();
                       // A hangup or an invalid request ends the connection.
                     });
  }

 private:
  void answer() {
    const Request& request = parser_->get();
    response_.emplace(std::piecewise_construct, std::make_tuple(), std::make_tuple(&memory_));
    response_->version(request.version());
    response_->keep_alive(request.keep_alive());
    response_->set(http::field::date, date());
    route(request);
    response_->prepare_payload();
    http::async_write(socket_, *response_, [self = shared_from_this()](error_code error, auto) {
      if (!error) self->wrote();
    });
  }

  void wrote() {
    if (response_->keep_alive()) return read();
    error_code ignored;
    socket_.shutdown(loop::Socket::shutdown_send, ignored);
  }

  void route(const Request& request) {
    const std::string_view path(request.target().data(), request.target().size());
    if (request.method() == http::verb::get && path == "/") {
      fill(text_type, "Hello Weir\n");
    } else if (request.method() == http::verb::get && path == "/190") {
      fill(text_type, "Hello Weir" + std::string(62, '.') + '\n');
    } else if (request.method() == http::verb::post && path == "/ping") {
      ping(request.body());
    } else {
      response_->result(http::status::not_found);
    }
  }

  void fill(std::string_view type, std::string body) {
    response_->result(http::status::ok);
    response_->set(http::field::content_type, type);
    response_->body() = std::move(body);
  }

  void ping(const std::string& body) {
    std::array<unsigned char, 1024> memory;
    json::monotonic_resource resource(memory.data(), memory.size());
    error_code error;
    const json::value received = json::parse(body, error, &resource);
    const auto message = json::try_value_to<Ping>(received);
    if (error || !message) return response_->result(http::status::bad_request);
    fill(json_type, json::serialize(json::value_from(*message, &resource)));
  }

  loop::Socket socket_;
  boost::beast::flat_buffer buffer_{16 * 1024};
  std::array<std::byte, 4096> storage_;
  std::pmr::monotonic_buffer_resource memory_{storage_.data(), storage_.size()};
  std::optional<http::request_parser<http::string_body, Allocator>> parser_;
  std::optional<http::response<http::string_body, Fields>> response_;
};

/// Accepts and serves connections on one thread.
class Server {
 public:
  explicit Server(std::uint16_t port) : acceptor_(context_) {
    const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(Acceptor::reuse_address(true));
    acceptor_.set_option(ReusePort(true));
    acceptor_.bind(endpoint);
    acceptor_.listen(backlog);
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void run() {
    accept();
    context_.run();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, loop::Socket socket) {
      if (!error) std::make_shared<Connection>(std::move(socket))->read();
      accept();
    });
  }

  asio::io_context context_{1};
  Acceptor acceptor_;
};

/// Returns the number after `name`, or `fallback`.
unsigned long option(int count, char** arguments, std::string_view name, unsigned long fallback) {
  for (int index = 1; index + 1 < count; ++index) {
    if (arguments[index] == name) return std::strtoul(arguments[index + 1], nullptr, 10);
  }
  return fallback;
}

}  // namespace

int main(int count, char** arguments) {
  Server server(static_cast<std::uint16_t>(option(count, arguments, "--port", 0)));
  const std::uint16_t port = server.port();
  for (unsigned long more = option(count, arguments, "--cores", 1); more > 1; --more) {
    std::thread([port] { Server(port).run(); }).detach();
  }
  std::printf("listening on 127.0.0.1:%u\n", static_cast<unsigned>(port));
  std::fflush(stdout);
  server.run();
}
