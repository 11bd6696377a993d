// Parses any bytes as requests. The verdict does not depend on cuts, and an accepted head is
// valid.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::http::CharClass;
using weir::http::HeadParser;
using weir::http::ParseError;
using weir::http::ParseResult;
using weir::http::RequestHead;

/// Checks what every accepted head promises.
void check_promises(const RequestHead& head) {
  require(weir::http::is_token(head.method_text()));
  require(head.target().find_first_of(std::string_view("\r\n \t\0", 5)) == std::string_view::npos);
  require(!head.chunked() || !head.has_content_length());
  require(!head.chunked() || head.version_minor() > 0);
  require(head.content_length() <= INT64_MAX);
  require(head.version_minor() == 0 || weir::http::parse_authority(head.authority()).has_value());
  std::size_t hosts = 0;
  std::size_t lengths = 0;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const weir::http::HeaderField header = head.header_at(index);
    require(weir::http::is_valid_header(header.name, header.value));
    require(weir::http::trim(header.value) == header.value);
    hosts += weir::http::equals_ignoring_case(header.name, "host");
    lengths += weir::http::equals_ignoring_case(header.name, "content-length") ||
               weir::http::equals_ignoring_case(header.name, "transfer-encoding");
  }
  require(hosts == 1 || (hosts == 0 && head.version_minor() == 0));
  require(lengths == (head.chunked() || head.has_content_length() ? 1 : 0));
  require(head.bytes().ends_with("\r\n\r\n") || head.header_count() == 0);
  if (head.target_form() == weir::http::TargetForm::origin) {
    require(head.path().starts_with('/'));
    require(weir::http::check_path(head.path()) == ParseError::none);
  }
}

/// Checks that both heads are equal. The second parser compared the Host line with a cached one.
void check_same(const RequestHead& first, const RequestHead& second) {
  require(first.authority() == second.authority());
  require(first.header_count() == second.header_count());
  for (std::size_t index = 0; index < first.header_count(); ++index) {
    require(first.header_at(index).name == second.header_at(index).name);
    require(first.header_at(index).value == second.header_at(index).value);
  }
}

bool same(const ParseResult& a, const ParseResult& b) {
  return a.kind == b.kind && a.error == b.error && a.consumed == b.consumed;
}

/// Returns the verdict of a parser that gets longer and longer prefixes of the input.
ParseResult parse_in_steps(std::string_view input, std::size_t step,
                           const weir::http::HeadLimits& limits) {
  HeadParser parser(limits);
  RequestHead head;
  for (std::size_t size = step; size < input.size(); size += step) {
    const ExactCopy part(input.substr(0, size));
    const ParseResult result = parser.parse(part.view(), head);
    if (result.kind != ParseResult::Kind::incomplete) return result;
  }
  const ExactCopy whole(input);
  const ParseResult result = parser.parse(whole.view(), head);
  if (result.kind == ParseResult::Kind::complete) check_promises(head);
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const weir::http::HeadLimits tight{
      .request_line_max = 40, .headers_bytes_max = 80, .headers_max = 3};
  for (const weir::http::HeadLimits& limits : {weir::http::HeadLimits{}, tight}) {
    std::string_view rest = input;
    for (int requests = 0; requests < 4; ++requests) {
      weir::http::HostLineCache host_line_cache;
      HeadParser parser(limits, &host_line_cache);
      RequestHead head;
      const ExactCopy copy(rest);
      const ParseResult whole = parser.parse(copy.view(), head);
      HeadParser cached(limits, &host_line_cache);
      RequestHead known_head;
      require(same(whole, cached.parse(copy.view(), known_head)));
      if (whole.kind == ParseResult::Kind::complete) check_same(head, known_head);
      if (whole.kind == ParseResult::Kind::complete) check_promises(head);
      if (rest.size() <= 512) require(same(whole, parse_in_steps(rest, 1, limits)));
      require(same(whole, parse_in_steps(rest, rest.size() / 3 + 1, limits)));
      if (whole.kind != ParseResult::Kind::complete) break;
      rest.remove_prefix(whole.consumed);
    }
  }
  return 0;
}
