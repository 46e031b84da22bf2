#include "task/fewshot.h"

#include <numeric>

#include "base/error.h"

namespace hlat {

FewShotTexts::FewShotTexts(std::vector<TaskRecord> records, int64_t count, bool first, bool from_data, uint64_t seed, Write write)
    : records_(std::move(records)),
      texts_(records_.size()),
      count_(static_cast<size_t>(count)),
      first_(first),
      from_data_(from_data),
      random_(seed),
      write_(std::move(write)) {
  HLAT_CHECK(records_needed(count, from_data) <= records_.size(), "{} few-shot examples for {} shots", records_.size(), count);
}

size_t FewShotTexts::records_needed(int64_t count, bool from_data) { return static_cast<size_t>(count) + (count > 0 && from_data ? 1 : 0); }

std::string FewShotTexts::next(const Json& question) {
  left_out_ = 0;
  if (count_ == 0) return "";
  const auto drawn = static_cast<uint32_t>(records_needed(static_cast<int64_t>(count_), from_data_));
  std::vector<uint32_t> numbers(drawn);
  if (first_)
    std::iota(numbers.begin(), numbers.end(), 0u);
  else
    numbers = random_.sample(static_cast<uint32_t>(records_.size()), drawn);
  std::string out;
  size_t left = count_;
  for (const uint32_t n : numbers) {
    if (left == 0) break;
    if (records_[n].fields == question) continue;
    out += text(n);
    --left;
  }
  left_out_ = static_cast<int64_t>(left);
  return out;
}

const std::string& FewShotTexts::text(size_t number) {
  std::optional<std::string>& known = texts_[number];
  if (known) return *known;
  try {
    known = write_(records_[number]);
  } catch (const Error& e) {
    fail<UsageError>("few-shot example {}: {}", records_[number].where, e.what());
  }
  return *known;
}

}  // namespace hlat
