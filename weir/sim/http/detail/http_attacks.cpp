#include "weir/testing/http_attacks.hpp"

namespace weir {
namespace {

using Then = HttpAttack::Then;

std::string repeated(std::string_view text, int count) {
  std::string all;
  while (count-- > 0) all += text;
  return all;
}

std::string post(std::string_view fields) {
  return "POST /count HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n\r\n";
}

std::vector<HttpAttack> make_attacks() {
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  const std::string large = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string chunked = post("Transfer-Encoding: chunked");
  const std::string many = repeated(large, 200);
  std::vector<HttpAttack> all;
  all.push_back({.name = "says nothing"});
  all.push_back({.name = "a head by bytes", .opening = head + "X: ", .more = "x", .slowly = true});
  all.push_back({.name = "a head by lines", .opening = head, .more = "X: y\r\n", .slowly = true});
  all.push_back({.name = "a large head, but for its end",
                 .opening = head + repeated("X: " + std::string(1000, 'x') + "\r\n", 60)});
  all.push_back({.name = "a head without an end",
                 .opening = head,
                 .more = "X: " + std::string(2000, 'y') + "\r\n"});
  all.push_back({.name = "empty lines", .more = "\r\n", .slowly = true});
  all.push_back({.name = "a body by bytes",
                 .opening = post("Content-Length: 60000"),
                 .more = "b",
                 .slowly = true});
  all.push_back({.name = "a body, but for its end",
                 .opening = post("Content-Length: 60000") + std::string(59'999, 'b')});
  all.push_back({.name = "chunks of one byte",
                 .opening = chunked,
                 .more = "1;name=\"value\"\r\nc\r\n",
                 .slowly = true});
  all.push_back({.name = "extensions",
                 .opening = chunked,
                 .more = repeated("1;name=\"value\"\r\nc\r\n", 50)});
  all.push_back({.name = "chunks, but for the last",
                 .opening = chunked + repeated("ff0\r\n" + std::string(0xff0, 'c') + "\r\n", 16)});
  all.push_back({.name = "trailers",
                 .opening = chunked + "0\r\n",
                 .more = "X: " + std::string(2000, 'y') + "\r\n"});
  all.push_back({.name = "a body that is invited in vain",
                 .opening = post("Content-Length: 9\r\nExpect: 100-continue")});
  all.push_back({.name = "reads nothing", .opening = many, .more = many, .takes = 0});
  all.push_back({.name = "reads by bytes", .opening = many, .takes = 1});
  all.push_back({.name = "reads nothing, says no more",
                 .opening = many,
                 .takes = 0,
                 .then = Then::half_closes});
  all.push_back({.name = "half a head, no more", .opening = head, .then = Then::half_closes});
  all.push_back({.name = "no more at once", .then = Then::half_closes});
  all.push_back(
      {.name = "resets with answers on their way", .opening = many, .then = Then::resets});
  all.push_back({.name = "resets at once", .then = Then::resets});
  all.push_back({.name = "TLS", .opening = std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc", 9)});
  all.push_back({.name = "HTTP/2", .opening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"});
  all.push_back({.name = "PROXY", .opening = "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + head});
  return all;
}

}  // namespace

const std::vector<HttpAttack>& every_http_attack() {
  static const std::vector<HttpAttack> all = make_attacks();
  return all;
}

}  // namespace weir
