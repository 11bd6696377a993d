// The limit of io_uring: sends canned responses with one kernel entry per turn, multishot accepts
// and receives, provided buffers, and direct descriptors outside the process's table.
#include <liburing.h>

#include <sys/mman.h>

#include <vector>

#include "bench/limit/canned.hpp"

namespace {

using limit::exit_with_error;

enum class Tag : std::uint64_t { accept, receive, send, none };

struct Connection {
  limit::RequestCount requests;
  std::size_t owed = 0;    // unsent bytes of responses
  bool sending = false;    // a send is in flight
  bool receiving = false;  // a receive is armed
  bool ended = false;      // no more requests are answered
};

class Server {
 public:
  explicit Server(const limit::Options& options)
      : options_(options), answers_(options), listener_(limit::start_listening(options)) {
    open_ring();
    open_buffers();
    // The limit of the process's descriptors bounds the ring's table of files.
    connections_.resize(
        std::min<std::uint64_t>(connections_max, weir::os::raise_descriptor_limit().now));
    const auto files = static_cast<unsigned>(connections_.size());
    if (const int failed = ::io_uring_register_files_sparse(&ring_, files); failed != 0) {
      exit_with_error("registering files", -failed);
    }
    accept();
  }

  [[noreturn]] void run() {
    for (;;) {
      const int entered = ::io_uring_submit_and_wait(&ring_, 1);
      if (entered < 0 && entered != -EINTR && entered != -EBUSY)
        exit_with_error("io_uring", -entered);
      io_uring_cqe* completion = nullptr;
      unsigned head = 0;
      unsigned seen = 0;
      io_uring_for_each_cqe(&ring_, head, completion) {
        completed(*completion);
        ++seen;
      }
      ::io_uring_cq_advance(&ring_, seen);
      give_buffers_back();
    }
  }

 private:
  static constexpr unsigned entries = 4096;
  static constexpr unsigned connections_max = 32 * 1024;
  static constexpr unsigned buffer_count = 1024;
  // The size is no multiple of a page: otherwise all buffers would begin in one cache set.
  static constexpr unsigned buffer_bytes = 4096 + 192;
  static constexpr int buffer_group = 0;

  void open_ring() {
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                       IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    parameters.cq_entries = 16 * entries;
    const int failed = ::io_uring_queue_init_params(entries, &ring_, &parameters);
    if (failed != 0) exit_with_error("io_uring_setup", -failed);
    if (const int done = ::io_uring_register_ring_fd(&ring_); done < 0) {
      exit_with_error("registering the ring", -done);
    }
  }

  void open_buffers() {
    const auto map = [](std::size_t bytes) {
      void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      if (memory == MAP_FAILED) exit_with_error("mmap");
      return memory;
    };
    buffers_ = static_cast<char*>(map(std::size_t{buffer_count} * buffer_bytes));
    buffer_ring_ = static_cast<io_uring_buf_ring*>(map(buffer_count * sizeof(io_uring_buf)));
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uintptr_t>(buffer_ring_);
    registration.ring_entries = buffer_count;
    registration.bgid = buffer_group;
    const int failed = ::io_uring_register_buf_ring(&ring_, &registration, 0);
    if (failed != 0) exit_with_error("registering buffers", -failed);
    for (unsigned id = 0; id < buffer_count; ++id) give_back(id);
    give_buffers_back();
  }

  char* buffer(unsigned id) noexcept { return buffers_ + std::size_t{id} * buffer_bytes; }

  void give_back(unsigned id) noexcept {
    ::io_uring_buf_ring_add(buffer_ring_, buffer(id), buffer_bytes, static_cast<unsigned short>(id),
                            buffer_count - 1, returned_++);
  }
  void give_buffers_back() noexcept {
    if (returned_ == 0) return;
    ::io_uring_buf_ring_advance(buffer_ring_, returned_);
    returned_ = 0;
  }

  io_uring_sqe& next_entry(Tag tag, unsigned index) {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
      ::io_uring_submit(&ring_);
      entry = ::io_uring_get_sqe(&ring_);
    }
    entry->user_data = static_cast<std::uint64_t>(tag) << 32 | index;
    return *entry;
  }
  /// Sets the user data after io_uring_prep_*(), which clears it in some versions.
  static void name(io_uring_sqe& entry, Tag tag, unsigned index) {
    entry.user_data = static_cast<std::uint64_t>(tag) << 32 | index;
  }

  void accept() {
    io_uring_sqe& entry = next_entry(Tag::accept, 0);
    ::io_uring_prep_multishot_accept_direct(&entry, listener_.get(), nullptr, nullptr, 0);
    name(entry, Tag::accept, 0);
  }

  void receive(unsigned index) {
    io_uring_sqe& entry = next_entry(Tag::receive, index);
    if (options_.close) {
      ::io_uring_prep_recv(&entry, static_cast<int>(index), nullptr, 0, 0);
    } else {
      ::io_uring_prep_recv_multishot(&entry, static_cast<int>(index), nullptr, 0, 0);
    }
    entry.flags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
    entry.buf_group = buffer_group;
    name(entry, Tag::receive, index);
    connections_[index].receiving = true;
  }

  void send(unsigned index) {
    Connection& connection = connections_[index];
    const std::string_view next = answers_.next(connection.owed);
    io_uring_sqe& entry = next_entry(Tag::send, index);
    ::io_uring_prep_send(&entry, static_cast<int>(index), next.data(), next.size(),
                         MSG_NOSIGNAL | MSG_WAITALL);
    entry.flags = IOSQE_FIXED_FILE;
    name(entry, Tag::send, index);
    connection.sending = true;
  }

  /// Closes the file. No operation may be armed: it would keep the file open for the peer.
  void close(unsigned index) {
    io_uring_sqe& entry = next_entry(Tag::none, index);
    ::io_uring_prep_close_direct(&entry, index);
    entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
    name(entry, Tag::none, index);
  }

  void completed(const io_uring_cqe& completion) {
    const auto index = static_cast<unsigned>(completion.user_data);
    switch (static_cast<Tag>(completion.user_data >> 32)) {
      case Tag::accept:
        return accepted(completion);
      case Tag::receive:
        return received(index, completion);
      case Tag::send:
        return sent(index, completion.res);
      case Tag::none:
        return;
    }
  }

  void accepted(const io_uring_cqe& completion) {
    if (completion.res >= 0) {
      const auto index = static_cast<unsigned>(completion.res);
      connections_[index] = {};
      receive(index);
    }
    if ((completion.flags & IORING_CQE_F_MORE) == 0) accept();
  }

  void received(unsigned index, const io_uring_cqe& completion) {
    Connection& connection = connections_[index];
    connection.receiving = (completion.flags & IORING_CQE_F_MORE) != 0;
    if (completion.res > 0) {
      const unsigned id = completion.flags >> IORING_CQE_BUFFER_SHIFT;
      const std::string_view bytes(buffer(id), static_cast<std::size_t>(completion.res));
      connection.owed += connection.requests.add(bytes, options_.request_bytes) * answers_.size();
      give_back(id);
    } else if (completion.res != -ENOBUFS) {
      connection.ended = true;
    }
    advance(index);
  }

  void sent(unsigned index, int result) {
    Connection& connection = connections_[index];
    connection.sending = false;
    if (result < 0) {
      connection.ended = true;  // the receive ends automatically
      connection.owed = 0;
    } else {
      connection.owed -= static_cast<std::size_t>(result);
      connection.ended |= options_.close && connection.owed == 0;
    }
    advance(index);
  }

  void advance(unsigned index) {
    Connection& connection = connections_[index];
    if (connection.owed != 0 && !connection.sending) send(index);
    if (connection.receiving || connection.sending) return;
    if (connection.ended) {
      close(index);
    } else {
      receive(index);
    }
  }

  const limit::Options options_;
  const limit::CannedResponses answers_;
  weir::os::Fd listener_;
  io_uring ring_{};
  io_uring_buf_ring* buffer_ring_ = nullptr;
  char* buffers_ = nullptr;
  int returned_ = 0;                     // returned buffers not yet published
  std::vector<Connection> connections_;  // by their index in the ring's table
};

}  // namespace

int main(int argc, char** argv) {
  Server(limit::parse_options(argc, argv)).run();
}
