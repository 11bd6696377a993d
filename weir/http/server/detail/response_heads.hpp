// The parts of response heads that the connections share.
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

/// Caches the date of the present second, and the common head with this date.
/// Threads: the loop's.
class ResponseHeads {
 public:
  explicit ResponseHeads(Loop& loop) noexcept
      : loop_(loop), date_(loop.platform().wall_time()), date_until_(loop.now()) {}

  /// Returns the date for a Date header, at most one second old.
  const Date& date() noexcept {
    if (loop_.now() >= date_until_) refresh();
    return date_;
  }
  /// Returns the head of a common response with this media type, of at most
  /// ResponseHeadCache::type_size_max bytes.
  const ResponseHeadCache& common(std::string_view content_type) noexcept {
    const Date& now = date();
    if (!common_.is_for(content_type)) common_.begin(now, content_type);
    return common_;
  }
  /// Returns the block of a common response of HTTP/2 in the same way.
  const ResponseBlockCache& common_block(std::string_view content_type) noexcept {
    const Date& now = date();
    if (!common_block_.is_for(content_type)) common_block_.begin(now, content_type, ++blocks_);
    return common_block_;
  }

 private:
  void refresh() noexcept;

  Loop& loop_;
  Date date_;
  Instant date_until_;
  ResponseHeadCache common_;
  ResponseBlockCache common_block_;
  std::uint64_t blocks_ = 0;  // number of blocks that common_block_ has had
};

}  // namespace weir::http
