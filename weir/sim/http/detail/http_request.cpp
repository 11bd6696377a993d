#include "weir/testing/http_asked.hpp"

#include <charconv>
#include <string_view>
#include <utility>

namespace weir {
namespace {

std::string hexadecimal(std::size_t number) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, number, 16).ptr;
  return {text, end};
}

HttpAsked get(const std::string& path, std::string body) {
  HttpAsked asked;
  asked.text = "GET " + path + " HTTP/1.1\r\nHost: a\r\n";
  asked.body = std::move(body);
  return asked;
}

std::string chunked(WorldDraw& draw, std::string_view body) {
  std::string text;
  while (!body.empty()) {
    const std::size_t size = 1 + draw.below(body.size());
    text += hexadecimal(size) + "\r\n";
    text += body.substr(0, size);
    text += "\r\n";
    body.remove_prefix(size);
  }
  return text + "0\r\n\r\n";
}

HttpAsked post(WorldDraw& draw, const std::string& id, const std::string& ending) {
  std::string body(draw.below(draw.happens(0.1) ? 20'000 : 300), ' ');
  unsigned sum = 0;
  for (char& each : body) {
    each = static_cast<char>('a' + draw.below(26));
    sum += static_cast<unsigned char>(each);
  }
  HttpAsked asked;
  asked.method = "POST";
  asked.body = "echo " + id + " " + std::to_string(body.size()) + " " + std::to_string(sum) + "\n";
  asked.text = "POST /echo/" + id + " HTTP/1.1\r\nHost: a\r\n" + ending;
  if (draw.happens(0.2)) asked.text += "Expect: 100-continue\r\n";
  if (draw.happens(0.5)) {
    asked.text += "Transfer-Encoding: chunked\r\n\r\n" + chunked(draw, body);
  } else {
    asked.text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  return asked;
}

std::string repeated(const std::string& line, std::size_t count) {
  std::string text;
  while (count-- > 0) text += line;
  return text;
}

HttpAsked malformed(WorldDraw& draw) {
  constexpr std::string_view texts[] = {
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
      "POST /echo/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
  };
  HttpAsked asked;
  asked.text = texts[draw.below(std::size(texts))];
  asked.status = 400;
  asked.closes = true;
  return asked;
}

}  // namespace

HttpAsked draw_http_request(WorldDraw& draw, std::size_t number, bool last) {
  const std::string id = std::to_string(number);
  const bool closes = last && draw.happens(0.3);
  if (closes && draw.happens(0.5)) return malformed(draw);
  const std::string ending = closes ? "Connection: close\r\n" : "";
  HttpAsked asked;
  switch (draw.below(8)) {
    case 0:
      asked = get("/slow/" + id + "/" + std::to_string(draw.below(300)), "slow " + id + "\n");
      break;
    case 1:
      asked = get("/pool/" + id, "pool " + id + "\n");
      break;
    case 2: {
      const std::size_t count = draw.below(draw.happens(0.1) ? 3000 : 20);
      asked = get("/lines/" + id + "/" + std::to_string(count), repeated(id + "\n", count));
      break;
    }
    case 3:
      asked = get("/missing/" + id, "");
      asked.status = 404;
      break;
    case 4:
      asked = get("/n/" + id, "");
      asked.method = "HEAD";
      asked.text.replace(0, 3, "HEAD");
      break;
    case 5:
    case 6:
      asked = post(draw, id, ending);
      asked.closes = closes;
      return asked;
    default:
      asked = get("/n/" + id, "n " + id + "\n");
      break;
  }
  asked.text += ending + "\r\n";
  asked.closes = closes;
  return asked;
}

}  // namespace weir
