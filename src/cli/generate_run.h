// What hlat generate does once its model is there: a text that is shown as it comes, a conversation in a terminal, or a file of prompts to
// a file of texts. All ranks take part; rank 0 reads, shows and writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/eval_signals.h"
#include "cli/prompt_lines.h"
#include "eval/completion.h"
#include "runtime/session.h"

namespace hlat {

struct GenerateOutput {
  bool logprobs = false, json = false;
  std::string file = {};  // of a batch; empty: standard output
};

// UsageError where `file` is there already or its folder is not.
void check_output(const std::string& file);

class GenerateRun {
 public:
  // All but `output` must outlive this.
  GenerateRun(Completer& completer, const Tokenizer& tokenizer, Session& session, EvalSignals& signals, GenerateOutput output)
      : completer_(completer), tokenizer_(tokenizer), session_(session), signals_(signals), output_(std::move(output)) {}

  void one(const PromptLine& line);
  // A line in, a text out, until the input ends; each is drawn with the next seed.
  void converse(TextRequest request);
  void batch(const std::vector<PromptLine>& lines);
  std::string speed() const;  // "256 tokens in 1.00 s, 256.0 tokens/s"

 private:
  bool leads() const { return session_.rank() == 0; }
  std::vector<Completion> complete(const std::vector<TextRequest>& requests, const Completer::OnText& on_text,
                                   const LanguageModel::Told& told);
  Completion stream(const TextRequest& request);
  void write(const std::string& lines);
  void tell_progress(size_t done, size_t all);

  Completer& completer_;
  const Tokenizer& tokenizer_;
  Session& session_;
  EvalSignals& signals_;
  GenerateOutput output_;
  std::optional<OutputFile> file_;  // once there is something to write
  double seconds_ = 0, told_at_ = 0;
  size_t tokens_ = 0;
};

}  // namespace hlat
