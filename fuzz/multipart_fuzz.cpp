// Parses any bytes as a multipart form. The events do not depend on cuts, the limits hold, and no
// content has a boundary in it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/web/forms/detail/multipart_parser.hpp"
#include "weir/web/forms/detail/part_head.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::http::MultipartLimits;
using weir::http::detail::MultipartParser;
using weir::http::detail::PartHead;
using Event = MultipartParser::Event;

constexpr MultipartLimits limits{.parts_max = 8,
                                 .headers_max = 3,
                                 .head_bytes_max = 120,
                                 .name_bytes_max = 20,
                                 .outer_bytes_max = 40};

/// The events of a body as one text, in which the content of a part is one piece.
class Events {
 public:
  void parse(std::string_view piece) {
    const ExactCopy copy(piece);
    std::string_view input = copy.view();
    while (!failed_) {
      const Event event = parser_.next(input);
      if (event == Event::need_input) break;
      add(event);
    }
    require(failed_ || input.empty());
  }
  std::string finish() {
    if (!failed_ && parser_.finish()) {
      require(ended_ && !in_part_);
    } else {
      text_ += "!" + std::to_string(static_cast<int>(parser_.error()));
    }
    return text_;
  }

 private:
  void add(Event event) {
    require(!ended_ || event == Event::error);
    if (event == Event::part) {
      require(!in_part_ && ++parts_ <= limits.parts_max);
      in_part_ = true;
      check_head();
    } else if (event == Event::data) {
      require(in_part_ && !parser_.data().empty());
      content_ += parser_.data();
      text_ += parser_.data();
    } else if (event == Event::part_end) {
      require(in_part_ && content_.find("\r\n--XX\r\n") == std::string::npos);
      require(content_.find("\r\n--XX--") == std::string::npos);
      in_part_ = false;
      content_.clear();
      text_ += "]";
    } else if (event == Event::end) {
      require(!in_part_);
      ended_ = true;
      text_ += ".";
    } else {
      failed_ = true;
    }
  }
  void check_head() {
    const PartHead& head = parser_.head();
    require(head.headers.size() <= limits.headers_max);
    require(head.name.size() <= limits.name_bytes_max);
    for (const auto& each : head.headers) {
      require(weir::http::is_valid_header(each.name, each.value));
    }
    text_ += "[" + head.name + ":" + std::string(head.content_type) + ":";
    if (!head.file_name) return;
    require(head.file_name->size() <= limits.name_bytes_max);
    const std::string safe = weir::http::detail::safe_file_name(*head.file_name);
    require(!safe.empty() && safe.size() <= 255 && safe != "." && safe != "..");
    require(safe.find_first_of(std::string_view("/\\\0\r\n", 5)) == std::string::npos);
    text_ += safe;
  }

  MultipartParser parser_{"XX", limits};
  std::string text_;
  std::string content_;
  std::size_t parts_ = 0;
  bool in_part_ = false;
  bool ended_ = false;
  bool failed_ = false;
};

/// Parses pieces of `size` bytes; the first one has `first`.
std::string parse(std::string_view body, std::size_t first, std::size_t size) {
  Events events;
  while (!body.empty()) {
    const std::string_view piece = body.substr(0, first);
    events.parse(piece);
    body.remove_prefix(piece.size());
    first = size;
  }
  return events.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const std::string whole = parse(body, size, size);
  require(parse(body, 1, 1) == whole);
  const std::size_t step = size < 256 ? 1 : size / 64;
  for (std::size_t cut = 1; cut < size; cut += step) require(parse(body, cut, size) == whole);
  for (const std::size_t piece : {2U, 3U, 7U, 16U, 19U, 33U})
    require(parse(body, piece, piece) == whole);
  const auto boundary = weir::http::detail::boundary_of(body);
  require(!boundary || (!boundary->empty() && boundary->size() <= 70));
  return 0;
}
