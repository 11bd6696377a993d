#include "tools/differential/http2/test/nghttp2_server.hpp"

#include <nghttp2/nghttp2.h>

#include <array>
#include <new>

namespace weir::differential {
namespace {

std::string_view text_of(nghttp2_rcbuf* bytes) {
  const nghttp2_vec vector = nghttp2_rcbuf_get_buf(bytes);
  return {reinterpret_cast<const char*>(vector.base), vector.len};
}

}  // namespace

struct Nghttp2Server::Callbacks {
  static Nghttp2Server& self(void* user) { return *static_cast<Nghttp2Server*>(user); }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& requests = self(user).requests_;
    const auto found = requests.find(frame->hd.stream_id);
    if (found == requests.end()) {
      requests[frame->hd.stream_id];
    } else {
      found->second.in_trailers = true;
    }
    return 0;
  }
  static int header(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                    nghttp2_rcbuf* value, std::uint8_t, void* user) {
    Request& request = self(user).requests_[frame->hd.stream_id];
    const std::string_view key = text_of(name);
    const std::string_view text = text_of(value);
    if (request.in_trailers) {
      request.parsed.trailers.emplace_back(key, text);
    } else if (key == ":method") {
      request.parsed.method = text;
    } else if (key == ":path") {
      request.parsed.target = text;
    } else if (key == ":authority") {
      request.parsed.host = text;
    } else if (key == ":scheme") {
      request.parsed.scheme = text;
    } else {
      request.parsed.add(key, text);
    }
    return 0;
  }
  static int invalid_header(nghttp2_session*, const nghttp2_frame*, nghttp2_rcbuf*, nghttp2_rcbuf*,
                            std::uint8_t, void*) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  static int data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                  std::size_t size, void* user) {
    self(user).requests_[stream].parsed.body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      self(user).end(frame->hd.stream_id);
    }
    return 0;
  }
  static int sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Reading& reading = self(user).reading_;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      auto& outcome = reading.streams[static_cast<std::uint32_t>(frame->hd.stream_id)];
      if (!outcome.reset) outcome.reset = frame->rst_stream.error_code;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY && !reading.failed) {
      reading.failed = frame->goaway.error_code;
    }
    if (frame->hd.type == NGHTTP2_PING) ++reading.pings;
    return 0;
  }
};

Nghttp2Server::Nghttp2Server(bool answers) : answers_(answers) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc();
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback2(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, Callbacks::invalid_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::sent);
  const int made = nghttp2_session_server_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (made != 0) throw std::bad_alloc();
  const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 128},
                            nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65'536}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 1024 * 1024);
}

Nghttp2Server::~Nghttp2Server() {
  nghttp2_session_del(session_);
}

void Nghttp2Server::read(std::string_view piece) {
  if (reading_.failed) return;
  const auto used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size());
  const std::uint8_t* bytes = nullptr;
  while (nghttp2_session_mem_send(session_, &bytes) > 0) continue;
  if (used < 0 && !reading_.failed) reading_.failed = NGHTTP2_INTERNAL_ERROR;
}

const ParsedRequest* Nghttp2Server::request(std::uint32_t stream) const {
  const auto found = requests_.find(static_cast<std::int32_t>(stream));
  return found == requests_.end() ? nullptr : &found->second.parsed;
}

void Nghttp2Server::end(std::int32_t stream) {
  StreamOutcome& outcome = reading_.streams[static_cast<std::uint32_t>(stream)];
  outcome.request = requests_[stream].parsed.text();
  if (!answers_) return;
  std::array<std::uint8_t, 7> name{':', 's', 't', 'a', 't', 'u', 's'};
  std::array<std::uint8_t, 3> value{'2', '0', '0'};
  const nghttp2_nv status{name.data(), value.data(), name.size(), value.size(),
                          NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_response(session_, stream, &status, 1, nullptr);
}

}  // namespace weir::differential
