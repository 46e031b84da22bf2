// PCRE2 behind Regex.
#include "data/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "base/error.h"

namespace hlat {
namespace {

std::string pcre_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units(std::string_view s) { return reinterpret_cast<PCRE2_SPTR>(s.data()); }

constexpr size_t kJitStack = size_t{8} << 20;  // of which only what a match uses is touched

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
};

struct Regex::Search::Memory {
  const pcre2_code* code = nullptr;
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
  ~Memory() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Regex::Regex(const std::string& pattern, Dialect dialect) : code_(std::make_unique<Code>()) {
  const std::string text = dialect == Dialect::pcre2 ? pattern : rewrite_pattern(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->code = pcre2_compile(units(text), text.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &at, nullptr);
  if (code_->code == nullptr) fail("pattern '{}': {}", pattern, pcre_message(error));
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // without a JIT on this machine the interpreter does the same
}

Regex::~Regex() { pcre2_code_free(code_->code); }

Regex::Search::Search(const Regex& regex) : memory_(std::make_unique<Memory>()) {
  memory_->code = regex.code_->code;
  memory_->data = pcre2_match_data_create(1, nullptr);
  memory_->context = pcre2_match_context_create(nullptr);
  memory_->stack = pcre2_jit_stack_create(32 << 10, kJitStack, nullptr);
  if (memory_->data == nullptr || memory_->context == nullptr) throw std::bad_alloc();
  pcre2_jit_stack_assign(memory_->context, nullptr, memory_->stack);
}

Regex::Search::~Search() = default;
Regex::Search::Search(Search&&) noexcept = default;

bool Regex::Search::find(std::string_view text, size_t from, Range& match) {
  const int n = pcre2_match(memory_->code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK, memory_->data, memory_->context);
  if (n == PCRE2_ERROR_NOMATCH) return false;
  if (n < 0) fail("a tokenizer's pattern cannot be matched: {}", pcre_message(n));
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(memory_->data);
  match = {at[0], at[1]};
  return true;
}

}  // namespace hlat
