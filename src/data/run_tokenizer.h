// The tokenizer that a saved model reads and writes with, and the special tokens around its texts.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "config/config.h"
#include "data/embedded/corpus.h"

namespace hlat {

class RunTokenizer {
 public:
  // given: what a user names instead; empty: nothing. with_checkpoint: the one that lies in the checkpoint's folder, as that of an imported
  // model does; empty: none. Else data.tokenizer of the saved config, or that of the embedded corpus. imported: texts begin as the
  // tokenizer's file says, else as data.bos says. UsageError where there is no tokenizer, or where it has more tokens than the model.
  RunTokenizer(const Config& saved, const std::string& given, const std::filesystem::path& with_checkpoint, bool imported);

  const Tokenizer& get() const { return *tokenizer_; }
  const std::string& name() const { return name_; }  // where it comes from
  bool adds_bos() const { return adds_bos_; }        // texts begin with it: as the model was trained
  std::optional<int32_t> bos() const { return get().bos(); }
  std::optional<int32_t> eos() const { return eos_; }  // what ends a document

 private:
  std::unique_ptr<EmbeddedCorpus> corpus_;
  std::unique_ptr<Tokenizer> loaded_;
  const Tokenizer* tokenizer_ = nullptr;
  std::string name_;
  bool adds_bos_ = false;
  std::optional<int32_t> eos_;
};

}  // namespace hlat
