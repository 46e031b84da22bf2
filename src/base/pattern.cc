#include "base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace hlat {
namespace {

constexpr size_t kJitStack = size_t{8} << 20;  // of which only what a match uses is touched

std::string pcre_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units(std::string_view s) { return reinterpret_cast<PCRE2_SPTR>(s.data()); }

template <class T>
T fact(const pcre2_code* code, uint32_t what) {
  T value{};
  pcre2_pattern_info(code, what, &value);
  return value;
}

// PCRE2's table of names: entries of one size, each a number in two bytes and a name that ends with 0.
std::vector<std::pair<std::string, size_t>> names_of(const pcre2_code* code) {
  const auto count = fact<uint32_t>(code, PCRE2_INFO_NAMECOUNT), size = fact<uint32_t>(code, PCRE2_INFO_NAMEENTRYSIZE);
  const auto* entry = fact<PCRE2_SPTR>(code, PCRE2_INFO_NAMETABLE);
  std::vector<std::pair<std::string, size_t>> names;
  for (uint32_t i = 0; i < count; ++i, entry += size)
    names.emplace_back(reinterpret_cast<const char*>(entry + 2), static_cast<size_t>(entry[0]) << 8 | entry[1]);
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return names;
}

}  // namespace

struct Pattern::Code {
  pcre2_code* code = nullptr;
  std::vector<std::pair<std::string, size_t>> names;
  ~Code() { pcre2_code_free(code); }
};

struct Pattern::Search::Memory {
  const pcre2_code* code = nullptr;
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
  size_t found = 0;  // groups of the last match that can have taken part, the whole match among them
  ~Memory() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Pattern::Pattern(const std::string& text, const std::string& shown) : code_(std::make_unique<Code>()) {
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->code = pcre2_compile(units(text), text.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &at, nullptr);
  if (code_->code == nullptr) fail("pattern '{}': {}", shown, pcre_message(error));
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // without a JIT on this machine the interpreter does the same
  code_->names = names_of(code_->code);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

size_t Pattern::groups() const { return fact<uint32_t>(code_->code, PCRE2_INFO_CAPTURECOUNT); }
const std::vector<std::pair<std::string, size_t>>& Pattern::names() const { return code_->names; }

Pattern::Search::Search(const Pattern& pattern, Captures captures) : memory_(std::make_unique<Memory>()) {
  memory_->code = pattern.code_->code;
  const size_t pairs = captures == Captures::kept ? pattern.groups() + 1 : 1;
  memory_->data = pcre2_match_data_create(static_cast<uint32_t>(pairs), nullptr);
  memory_->context = pcre2_match_context_create(nullptr);
  memory_->stack = pcre2_jit_stack_create(32 << 10, kJitStack, nullptr);
  if (memory_->data == nullptr || memory_->context == nullptr) throw std::bad_alloc();
  pcre2_jit_stack_assign(memory_->context, nullptr, memory_->stack);
}

Pattern::Search::~Search() = default;
Pattern::Search::Search(Search&&) noexcept = default;

bool Pattern::Search::find(std::string_view text, size_t from, Range& match) {
  const int n = pcre2_match(memory_->code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK, memory_->data, memory_->context);
  if (n == PCRE2_ERROR_NOMATCH) return false;
  if (n < 0) fail("a pattern cannot be matched: {}", pcre_message(n));
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(memory_->data);
  match = {at[0], at[1]};
  memory_->found = n > 0 ? static_cast<size_t>(n) : 1;
  return true;
}

std::optional<Pattern::Range> Pattern::Search::group(size_t number) const {
  if (number >= memory_->found) return std::nullopt;
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(memory_->data) + 2 * number;
  if (at[0] == PCRE2_UNSET) return std::nullopt;
  return Range{at[0], at[1]};
}

}  // namespace hlat
