// The list of attacks on an HTTP server.
#include "weir/http_testing/detail/http_attacks.hpp"

namespace weir::sim {
namespace {

using EndAction = HttpAttack::EndAction;

std::string repeated(std::string_view text, int count) {
  std::string all;
  while (count-- > 0) all += text;
  return all;
}

std::string post(std::string_view headers) {
  return "POST /count HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n\r\n";
}

std::vector<HttpAttack> make_attacks() {
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  const std::string large = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string chunked = post("Transfer-Encoding: chunked");
  const std::string many = repeated(large, 200);
  std::vector<HttpAttack> all;
  all.push_back({.name = "sends nothing"});
  all.push_back({.name = "a head by bytes",
                 .initial_data = head + "X: ",
                 .repeated_data = "x",
                 .is_slow = true});
  all.push_back({.name = "a head by lines",
                 .initial_data = head,
                 .repeated_data = "X: y\r\n",
                 .is_slow = true});
  all.push_back({.name = "a large head without its last line",
                 .initial_data = head + repeated("X: " + std::string(1000, 'x') + "\r\n", 60)});
  all.push_back({.name = "a head without an end",
                 .initial_data = head,
                 .repeated_data = "X: " + std::string(2000, 'y') + "\r\n"});
  all.push_back({.name = "empty lines", .repeated_data = "\r\n", .is_slow = true});
  all.push_back({.name = "a body by bytes",
                 .initial_data = post("Content-Length: 60000"),
                 .repeated_data = "b",
                 .is_slow = true});
  all.push_back({.name = "a body without its last byte",
                 .initial_data = post("Content-Length: 60000") + std::string(59'999, 'b')});
  all.push_back({.name = "chunks of one byte",
                 .initial_data = chunked,
                 .repeated_data = "1;name=\"value\"\r\nc\r\n",
                 .is_slow = true});
  all.push_back({.name = "extensions",
                 .initial_data = chunked,
                 .repeated_data = repeated("1;name=\"value\"\r\nc\r\n", 50)});
  all.push_back(
      {.name = "chunks without the last one",
       .initial_data = chunked + repeated("ff0\r\n" + std::string(0xff0, 'c') + "\r\n", 16)});
  all.push_back({.name = "trailers",
                 .initial_data = chunked + "0\r\n",
                 .repeated_data = "X: " + std::string(2000, 'y') + "\r\n"});
  all.push_back({.name = "no body after 100 Continue",
                 .initial_data = post("Content-Length: 9\r\nExpect: 100-continue")});
  all.push_back(
      {.name = "reads nothing", .initial_data = many, .repeated_data = many, .read_size = 0});
  all.push_back({.name = "reads by bytes", .initial_data = many, .read_size = 1});
  all.push_back({.name = "reads nothing, half-closes",
                 .initial_data = many,
                 .read_size = 0,
                 .end_action = EndAction::half_close});
  all.push_back({.name = "half a head, half-closes",
                 .initial_data = head,
                 .end_action = EndAction::half_close});
  all.push_back({.name = "half-closes immediately", .end_action = EndAction::half_close});
  all.push_back({.name = "resets with responses in flight",
                 .initial_data = many,
                 .end_action = EndAction::reset});
  all.push_back({.name = "resets immediately", .end_action = EndAction::reset});
  all.push_back(
      {.name = "TLS", .initial_data = std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc", 9)});
  all.push_back({.name = "HTTP/2", .initial_data = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"});
  all.push_back({.name = "PROXY", .initial_data = "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + head});
  return all;
}

}  // namespace

const std::vector<HttpAttack>& http_attacks() {
  static const std::vector<HttpAttack> all = make_attacks();
  return all;
}

}  // namespace weir::sim
