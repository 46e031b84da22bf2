// What hlat generate does once its model is there: a text that is shown as it comes, a conversation in a terminal, or a file of prompts to
// a file of texts. All ranks take part; rank 0 reads, shows and writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/batch_shown.h"
#include "cli/eval_signals.h"
#include "cli/prompt_lines.h"
#include "eval/completion.h"
#include "runtime/session.h"

namespace hlat {

struct GenerateOutput {
  bool logprobs = false, json = false;
  std::string file = {};  // of a batch; empty: standard output
  bool goes_on = false;   // behind the answers that the file has
};

// UsageError where the file is there already, and is not to go on, or where its folder is not.
void check_output(const GenerateOutput& output);

class GenerateRun {
 public:
  // All but `output` must outlive this.
  GenerateRun(Completer& completer, const Tokenizer& tokenizer, Session& session, EvalSignals& signals, GenerateOutput output)
      : completer_(completer), tokenizer_(tokenizer), session_(session), signals_(signals), output_(std::move(output)) {}

  void one(const PromptLine& line);
  // A line in, a text out, until the input ends; each is drawn with the next seed.
  void converse(TextRequest request);
  // Prompts from number `done` on. What is answered is written every few seconds.
  void batch(const std::vector<PromptLine>& lines, size_t done);
  std::string speed() const;  // "256 tokens in 1.00 s, 256.0 tokens/s"

 private:
  bool leads() const { return session_.rank() == 0; }
  bool signals_wait() const { return session_.world().size() == 1; }  // ranks cannot agree within a text on where it ends
  std::vector<Completion> complete(const std::vector<TextRequest>& requests, const Completer::OnText& on_text,
                                   const LanguageModel::Told& told);
  Completion stream(const TextRequest& request);
  size_t block(const std::vector<PromptLine>& lines, size_t begin, size_t size, BatchShown* shown);
  void write(const std::string& lines);

  Completer& completer_;
  const Tokenizer& tokenizer_;
  Session& session_;
  EvalSignals& signals_;
  GenerateOutput output_;
  std::optional<OutputFile> file_;  // once there is something to write
  double seconds_ = 0;
  size_t tokens_ = 0;
};

}  // namespace hlat
