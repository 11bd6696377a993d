#include "weir/tls/openssl_memory.hpp"

#include <openssl/crypto.h>

#include <malloc.h>
#include <string.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace weir::tls {
namespace {

void* allocate(std::size_t size, const char*, int) {
  return std::malloc(size);
}

void release(void* memory, const char*, int) {
  if (memory == nullptr) return;
  ::explicit_bzero(memory, ::malloc_usable_size(memory));
  std::free(memory);
}

void* resize(void* memory, std::size_t size, const char* file, int line) {
  if (memory == nullptr) return std::malloc(size);
  void* const larger = size == 0 ? nullptr : std::malloc(size);
  if (size != 0 && larger == nullptr) return nullptr;
  if (larger != nullptr) std::memcpy(larger, memory, std::min(size, ::malloc_usable_size(memory)));
  release(memory, file, line);
  return larger;
}

}  // namespace

bool erase_openssl_memory() noexcept {
  CRYPTO_malloc_fn present = nullptr;
  CRYPTO_get_mem_functions(&present, nullptr, nullptr);
  if (present == &allocate) return true;  // an earlier call has set them
  return CRYPTO_set_mem_functions(&allocate, &resize, &release) == 1;
}

}  // namespace weir::tls
