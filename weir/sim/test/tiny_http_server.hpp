// The resources of HttpRequest, as a parser and a responder of a few lines. For tests only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sim {

/// A request as the server has understood it. `status` is 400 if it was malformed.
struct TinyRequest {
  std::string method;
  std::vector<std::string> path;  ///< the parts between slashes
  std::string body;
  bool chunked = false;
  bool expects_continue = false;
  bool closes = false;
  int status = 200;
};

inline std::vector<std::string> split_text(std::string_view text, std::string_view mark) {
  std::vector<std::string> parts;
  for (std::size_t end; (end = text.find(mark)) != text.npos;
       text.remove_prefix(end + mark.size())) {
    parts.emplace_back(text.substr(0, end));
  }
  parts.emplace_back(text);
  return parts;
}

/// Decodes a chunked body at the start of `text` and removes it. Returns nullopt if it is not
/// complete or not well formed.
inline std::optional<std::string> take_chunks(std::string& text) {
  std::string body;
  std::size_t at = 0;
  for (;;) {
    const std::size_t end = text.find("\r\n", at);
    if (end == text.npos) return std::nullopt;
    const std::size_t size = std::stoul(text.substr(at, end - at), nullptr, 16);
    if (text.size() < end + 4 + size) return std::nullopt;
    if (text.substr(end + 2 + size, 2) != "\r\n") return std::nullopt;
    body += text.substr(end + 2, size);
    at = end + 4 + size;
    if (size == 0) break;
  }
  text.erase(0, at);
  return body;
}

/// Removes the first request of `text`; nullopt if it is not complete yet. `expects_continue` is
/// set when its head has arrived and asks for an interim response.
inline std::optional<TinyRequest> take_request(std::string& text, bool& expects_continue) {
  expects_continue = false;
  const std::size_t end = text.find("\r\n\r\n");
  if (end == text.npos) return std::nullopt;
  TinyRequest request;
  std::vector<std::string> lines = split_text(text.substr(0, end), "\r\n");
  const std::vector<std::string> words = split_text(lines[0], " ");
  int hosts = 0;
  std::size_t length = 0;
  bool malformed = words.size() != 3 || words[1].find('\x01') != std::string::npos;
  for (std::size_t number = 1; number < lines.size(); ++number) {
    const std::vector<std::string> header = split_text(lines[number], ": ");
    malformed = malformed || header.size() != 2;
    if (malformed) break;
    if (header[0] == "Host") ++hosts;
    if (header[0] == "Connection") request.closes = header[1] == "close";
    if (header[0] == "Transfer-Encoding") request.chunked = header[1] == "chunked";
    if (header[0] == "Expect") request.expects_continue = true;
    if (header[0] != "Content-Length") continue;
    malformed = header[1].find_first_not_of("0123456789") != std::string::npos;
    if (!malformed) length = std::stoul(header[1]);
  }
  if (malformed || hosts != 1) {
    request.status = 400;
    request.closes = true;
    text.erase(0, end + 4);
    return request;
  }
  request.method = words[0];
  request.path = split_text(words[1].substr(1), "/");
  expects_continue = request.expects_continue;
  std::string rest = text.substr(end + 4);
  if (request.chunked) {
    auto body = take_chunks(rest);
    if (!body) return std::nullopt;
    request.body = std::move(*body);
  } else {
    if (rest.size() < length) return std::nullopt;
    request.body = rest.substr(0, length);
    rest.erase(0, length);
  }
  text = std::move(rest);
  return request;
}

/// Returns the body of the response; nullopt if the resource does not exist.
inline std::optional<std::string> tiny_body(const TinyRequest& request) {
  const std::string& resource = request.path[0];
  if (resource == "missing" || request.path.size() < 2) return std::nullopt;
  const std::string& id = request.path[1];
  if (resource == "echo") {
    std::uint64_t sum = 0;
    for (const char each : request.body) sum += static_cast<unsigned char>(each);
    return "echo " + id + " " + std::to_string(request.body.size()) + " " + std::to_string(sum) +
           "\n";
  }
  if (resource != "lines") return resource + " " + id + "\n";
  std::string body;
  for (std::size_t line = std::stoul(request.path[2]); line > 0; --line) body += id + "\n";
  return body;
}

inline std::string tiny_response(int status, std::string_view body, bool head_only = false,
                                 bool closes = false) {
  return "HTTP/1.1 " + std::to_string(status) + (closes ? " X\r\nConnection: close" : " X") +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(head_only ? "" : body);
}
inline std::string tiny_response(const TinyRequest& request) {
  if (request.status != 200) return tiny_response(request.status, "", false, request.closes);
  const auto body = tiny_body(request);
  return tiny_response(body ? 200 : 404, body.value_or(""), request.method == "HEAD",
                       request.closes);
}

}  // namespace weir::sim
