#include "data/run_tokenizer.h"

#include "base/error.h"
#include "data/tokenizer/adds_bos.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat {

RunTokenizer::RunTokenizer(const Config& saved, const std::string& given, const std::filesystem::path& with_checkpoint, bool imported) {
  const bool configured = given.empty() && with_checkpoint.empty();
  name_ = !given.empty() ? given : !with_checkpoint.empty() ? with_checkpoint.string() : saved.data.tokenizer;
  if (!name_.empty()) {
    if (!std::filesystem::exists(name_))
      fail<UsageError>("{}{}: there is no such file; --tokenizer names the tokenizer of the checkpoint",
                       configured ? "data.tokenizer of the checkpoint = " : "", name_);
    loaded_ = load_tokenizer(name_);
    tokenizer_ = loaded_.get();
  } else {
    if (!saved.data.sources.empty() || !saved.data.embedded) throw UsageError("the checkpoint names no tokenizer; --tokenizer names one");
    corpus_ = std::make_unique<EmbeddedCorpus>(saved.data.seed);
    tokenizer_ = &corpus_->tokenizer();
    name_ = "the embedded corpus";
  }
  if (tokenizer_->vocab_size() > saved.model.vocab)
    fail<UsageError>("the tokenizer {} has {} tokens, and the model {}: they do not belong together; --tokenizer names another one", name_,
                     tokenizer_->vocab_size(), saved.model.vocab);
  eos_ = saved.data.eos.empty() ? tokenizer_->eos() : tokenizer_->id_of(saved.data.eos);
  adds_bos_ = (imported && !corpus_ ? hlat::adds_bos(name_) : saved.data.bos) && tokenizer_->bos().has_value();
}

}  // namespace hlat
