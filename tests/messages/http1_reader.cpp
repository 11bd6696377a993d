#include "tests/messages/http1_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace weir::tests::messages {

Task<bool> Http1Reader::read_line(std::string& line) {
  std::size_t end = input_.find("\r\n");
  while (end == std::string::npos) {
    if (!co_await fill()) co_return false;
    end = input_.find("\r\n");
  }
  line = input_.substr(0, end);
  input_.erase(0, end + 2);
  co_return true;
}

Task<bool> Http1Reader::read_fields(Fields& fields) {
  std::string line;
  for (;;) {
    if (!co_await read_line(line)) co_return false;
    if (line.empty()) co_return true;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) co_return false;
    const std::size_t begin = line.find_first_not_of(' ', colon + 1);
    fields.emplace_back(line.substr(0, colon),
                        begin == std::string::npos ? std::string() : line.substr(begin));
  }
}

Task<bool> Http1Reader::read_exactly(std::size_t size, std::string& into) {
  for (std::size_t left = size; left > 0;) {
    if (input_.empty()) {
      const bool more = co_await fill();
      if (!more) co_return false;
    }
    const std::size_t part = std::min(left, input_.size());
    into.append(input_, 0, part);
    input_.erase(0, part);
    left -= part;
  }
  co_return true;
}

Task<End> Http1Reader::read_chunks(std::string& body, Fields& trailers) {
  std::string line;
  for (;;) {
    if (!co_await read_line(line)) co_return End::cut;
    const std::size_t size = std::strtoull(line.c_str(), nullptr, 16);
    if (size == 0) break;
    if (!co_await read_exactly(size, body)) co_return End::cut;
    if (!co_await read_line(line)) co_return End::cut;
  }
  const bool whole = co_await read_fields(trailers);
  co_return whole ? End::complete : End::cut;
}

Task<End> Http1Reader::read_all(std::string& into) {
  bool more = true;
  while (more) {
    into += std::exchange(input_, {});
    more = co_await fill();
  }
  co_return end_ == Errc::end_of_stream ? End::complete : End::cut;
}

Task<bool> Http1Reader::fill() {
  const auto piece = co_await stream_.read();
  if (piece) input_ += piece->text();
  if (!piece) end_ = piece.error();
  co_return piece.has_value();
}

}  // namespace weir::tests::messages
