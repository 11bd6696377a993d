// Random HTTP requests and the responses that they expect.
#include "weir/http_testing/detail/http_request.hpp"

#include <charconv>
#include <string_view>
#include <utility>

namespace weir::sim {
namespace {

std::string hexadecimal(std::size_t number) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, number, 16).ptr;
  return {text, end};
}

HttpRequest get(const std::string& path, std::string body) {
  HttpRequest request;
  request.text = "GET " + path + " HTTP/1.1\r\nHost: a\r\n";
  request.body = std::move(body);
  return request;
}

std::string chunked(Random& random, std::string_view body) {
  std::string text;
  while (!body.empty()) {
    const std::size_t size = 1 + random.below(body.size());
    text += hexadecimal(size) + "\r\n";
    text += body.substr(0, size);
    text += "\r\n";
    body.remove_prefix(size);
  }
  return text + "0\r\n\r\n";
}

HttpRequest post(Random& random, const std::string& id, const std::string& ending) {
  std::string body(random.below(random.bernoulli(0.1) ? 20'000 : 300), ' ');
  unsigned sum = 0;
  for (char& each : body) {
    each = static_cast<char>('a' + random.below(26));
    sum += static_cast<unsigned char>(each);
  }
  HttpRequest request;
  request.method = "POST";
  request.body =
      "echo " + id + " " + std::to_string(body.size()) + " " + std::to_string(sum) + "\n";
  request.text = "POST /echo/" + id + " HTTP/1.1\r\nHost: a\r\n" + ending;
  if (random.bernoulli(0.2)) request.text += "Expect: 100-continue\r\n";
  if (random.bernoulli(0.5)) {
    request.text += "Transfer-Encoding: chunked\r\n\r\n" + chunked(random, body);
  } else {
    request.text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  return request;
}

std::string repeated(const std::string& line, std::size_t count) {
  std::string text;
  while (count-- > 0) text += line;
  return text;
}

HttpRequest malformed(Random& random) {
  constexpr std::string_view texts[] = {
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
      "POST /echo/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
  };
  HttpRequest request;
  request.text = texts[random.below(std::size(texts))];
  request.status = 400;
  request.closes_connection = true;
  return request;
}

}  // namespace

HttpRequest random_http_request(Random& random, std::size_t number, bool last) {
  const std::string id = std::to_string(number);
  const bool closes_connection = last && random.bernoulli(0.3);
  if (closes_connection && random.bernoulli(0.5)) return malformed(random);
  const std::string ending = closes_connection ? "Connection: close\r\n" : "";
  HttpRequest request;
  switch (random.below(8)) {
    case 0:
      request = get("/slow/" + id + "/" + std::to_string(random.below(300)), "slow " + id + "\n");
      break;
    case 1:
      request = get("/pool/" + id, "pool " + id + "\n");
      break;
    case 2: {
      const std::size_t count = random.below(random.bernoulli(0.1) ? 3000 : 20);
      request = get("/lines/" + id + "/" + std::to_string(count), repeated(id + "\n", count));
      break;
    }
    case 3:
      request = get("/missing/" + id, "");
      request.status = 404;
      break;
    case 4:
      request = get("/n/" + id, "");
      request.method = "HEAD";
      request.text.replace(0, 3, "HEAD");
      break;
    case 5:
    case 6:
      request = post(random, id, ending);
      request.closes_connection = closes_connection;
      return request;
    default:
      request = get("/n/" + id, "n " + id + "\n");
      break;
  }
  request.text += ending + "\r\n";
  request.closes_connection = closes_connection;
  return request;
}

}  // namespace weir::sim
