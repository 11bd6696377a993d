// Requests with a document in their body, and the checks of their answers.
#include "tools/simulate/document_requests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "tools/simulate/document_text.hpp"

namespace weir::simulate {
namespace {

/// Returns the body in chunks of any size, with the headers that describe it.
std::string framed(const std::string& body, sim::Random& random) {
  if (random.bernoulli(0.6)) {
    return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  std::string text = "Transfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t size = std::min(1 + random.below(300), body.size() - at);
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
    text.append(digits.data(), end).append("\r\n").append(body, at, size).append("\r\n");
    at += size;
  }
  return text + "0\r\n\r\n";
}

std::string describe(const sim::HttpResponse& response) {
  return std::to_string(response.status) + " " + response.header("Content-Type") + " " +
         response.body;
}

struct MediaTypeCase {
  std::string_view header;
  bool is_json;
};

MediaTypeCase draw_media_type(sim::Random& random) {
  constexpr std::array<MediaTypeCase, 13> types{
      {{"", true},
       {"Content-Type: application/json\r\n", true},
       {"content-type: APPLICATION/JSON ; charset=UTF-8\r\n", true},
       {"Content-Type: application/problem+json;charset=\"utf8\"; a=b\r\n", true},
       {"Content-Type: application/json; charset=us-ascii;\r\n", true},
       {"Content-Type: application/json\r\nContent-Encoding: identity\r\n", true},
       {"Content-Type: text/plain\r\n", false},
       {"Content-Type: application/json; charset=latin1\r\n", false},
       {"Content-Type: application/json; charset\r\n", false},
       {"Content-Type: +json\r\n", false},
       {"Content-Type: application/json\r\nContent-Type: application/json\r\n", false},
       {"Content-Type: application/json; charset=\"utf-8\r\n", false},
       {"Content-Encoding: gzip\r\n", false}}};
  return types[random.below(random.bernoulli(0.8) ? 6 : types.size())];
}

}  // namespace

CheckedRequest draw_document_request(sim::Random& random, std::size_t id) {
  DocumentText document(random);
  const bool broken = random.bernoulli(0.5);
  DocumentText::Fault fault;
  if (broken) fault = document.break_text();
  const MediaTypeCase type = draw_media_type(random);
  CheckedRequest request;
  request.method = "POST";
  request.text = "POST /" + std::string(random.bernoulli(0.5) ? "json/" : "later/") +
                 std::to_string(id) + " HTTP/1.1\r\nHost: a\r\n" + std::string(type.header) +
                 framed(document.text(), random);
  int status = 200;
  std::string content_type = "application/json";
  std::string end = document.usual();
  if (!type.is_json) {
    status = 415;
    content_type = "application/problem+json";
    end = R"({"title":"Unsupported Media Type","status":415})";
  } else if (broken) {
    status = 400;
    content_type = "application/problem+json";
    end = ",\"offset\":" + std::to_string(fault.offset) + "}";
  }
  request.check = [=, text = document.text()](const sim::HttpResponse& response) -> std::string {
    // A broken text is malformed (400), or a value does not fit (422).
    const bool right = status == 400 ? response.body.contains(end) : response.body == end;
    const bool fits = response.status == status || (status == 400 && response.status == 422);
    if (right && fits && response.header("Content-Type") == content_type) {
      return {};
    }
    return describe(response) + " instead of " + std::to_string(status) + " " + end + " for " +
           text;
  };
  return request;
}

}  // namespace weir::simulate
