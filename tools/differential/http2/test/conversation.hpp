// Random conversations of HTTP/2: valid requests, one step that may be anything, and more requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct nghttp2_hd_deflater;

namespace weir::differential {

/// The bytes that a client sends, cut into frames. The first piece has the preface.
struct Conversation {
  std::vector<std::string> frames;
  std::string_view kind;  ///< the kind of the step that may be wrong
};

/// Makes conversations. The encoder of nghttp2 compresses most field blocks, with its table and
/// Huffman codes, so that later blocks depend on the tables of both servers.
class ConversationMaker {
 public:
  explicit ConversationMaker(std::uint32_t seed);

  Conversation make();
  /// Returns a number below `limit`.
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

 private:
  using Field = std::pair<std::string, std::string>;
  using Fields = std::vector<Field>;
  struct FreeDeflater {
    void operator()(nghttp2_hd_deflater* deflater) const noexcept;
  };

  template <class T, std::size_t Size>
  const T& one_of(const std::array<T, Size>& all) {
    return all[below(Size)];
  }
  bool one_in(std::uint32_t count) { return below(count) == 0; }
  std::uint32_t new_stream() { return std::exchange(next_, next_ + 2); }
  std::uint32_t any_stream();
  std::uint32_t any_value();
  void add(std::string frame) { frames_.push_back(std::move(frame)); }
  std::string encode(const Fields& fields);
  Fields head(std::string_view method);
  Field any_field();
  void add_fields(Fields& fields, std::uint32_t count);

  void send_head(std::uint32_t stream, std::string block, bool ends);
  void send_body(std::uint32_t stream, std::string_view content, bool ends);
  void send_valid();
  void send_any_frame();
  void send_invalid_head();
  void send_mutated_block();
  void send_setting();
  void send_window_update();
  void send_body_of_length();
  void send_trailers();
  void send_cut_block();
  void send_mutated_frame();
  void send_on_closed_stream();

  std::mt19937 random_;
  std::unique_ptr<nghttp2_hd_deflater, FreeDeflater> deflater_;
  std::vector<std::string> frames_;
  std::uint32_t next_ = 1;
};

}  // namespace weir::differential
