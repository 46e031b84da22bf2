#include "eval/prefix_encoder.h"

#include <algorithm>

namespace hlat {

namespace {

constexpr size_t kBetweenMarks = 256;  // bytes, about
constexpr size_t kTries = 4;           // a place that the new text cannot be cut at is rare; looking for one may cost as much as encoding

}  // namespace

size_t PrefixEncoder::keep_common(std::string_view text) {
  const auto differ = std::mismatch(text.begin(), text.end(), text_.begin(), text_.end());
  const auto common = static_cast<size_t>(differ.first - text.begin());
  while (!marks_.empty() && marks_.back().bytes > common) marks_.pop_back();
  // Whether a text can be cut at a place depends on what follows there too.
  for (size_t tries = 0; !marks_.empty(); ++tries) {
    if (tries == kTries) marks_.clear();
    if (marks_.empty() || encoder_->cut(text, marks_.back().bytes) == marks_.back().bytes) break;
    marks_.pop_back();
  }
  ids_.resize(marks_.empty() ? 0 : marks_.back().ids);
  return marks_.empty() ? 0 : marks_.back().bytes;
}

const std::vector<int32_t>& PrefixEncoder::encode(std::string_view text) {
  size_t at = keep_common(text);
  text_ = text.substr(0, at);  // should the encoder throw, what is kept belongs to this
  const auto add = [&](size_t bytes) {
    const std::string_view piece = text.substr(at, bytes);
    at == 0 ? encoder_->encode(piece, ids_) : encoder_->resume(piece, ids_);
    at += piece.size();
  };
  while (text.size() - at > kBetweenMarks) {
    const size_t cut = encoder_->cut(text.substr(at), kBetweenMarks);
    if (cut == 0) break;
    add(cut);
    marks_.push_back({.bytes = at, .ids = ids_.size()});
  }
  if (at < text.size()) add(text.size() - at);
  text_ = text;
  return ids_;
}

}  // namespace hlat
