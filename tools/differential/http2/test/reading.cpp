#include "tools/differential/http2/test/reading.hpp"

namespace weir::differential {
namespace {

void write_text(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte > ' ' && byte < 0x7f && each != '%') {
      out += each;
    } else {
      ((out += '%') += digits[byte >> 4U]) += digits[byte & 15U];
    }
  }
}

void write_field(std::string& out, std::string_view name, std::string_view value) {
  out += ' ';
  write_text(out, name);
  out += '=';
  write_text(out, value);
}

}  // namespace

void ParsedRequest::add(std::string_view name, std::string_view value) {
  if (name == "host") {
    several_hosts = several_hosts || !host.empty();
    if (host.empty()) host = value;
  } else if (name == "cookie") {
    cookie_ = cookie_ ? *cookie_ + "; " + std::string(value) : std::string(value);
  } else {
    fields.emplace_back(name, value);
  }
}

std::string ParsedRequest::text() const {
  std::string out;
  write_field(out, "method", method);
  write_field(out, "target", target);
  write_field(out, "host", host);
  for (const auto& [name, value] : fields) write_field(out, name, value);
  if (cookie_) write_field(out, "cookie", *cookie_);
  write_field(out, "body", body);
  for (const auto& [name, value] : trailers) write_field(out, "trailer-" + name, value);
  return out;
}

std::string Reading::text() const {
  std::string out;
  for (const auto& [id, stream] : streams) {
    out += "  " + std::to_string(id) + ":";
    if (stream.request) out += *stream.request;
    if (stream.rejected != 0) out += " rejected with " + std::to_string(stream.rejected);
    if (stream.reset) out += " reset with " + std::to_string(*stream.reset);
    out += "\n";
  }
  if (failed) out += "  failed with " + std::to_string(*failed) + "\n";
  return out + "  " + std::to_string(pings) + " pings answered\n";
}

}  // namespace weir::differential
