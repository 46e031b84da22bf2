#include "cli/generate_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

#include "base/json_text.h"
#include "base/machine.h"
#include "cli/print.h"
#include "runtime/from_rank_0.h"

namespace hlat {

void check_output(const std::string& file) {
  if (std::filesystem::exists(file)) fail<UsageError>("--out {}: it is there already; give another name", file);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail_storage(errno, "--out: cannot write to the folder of " + file);
}

std::vector<Completion> GenerateRun::complete(const std::vector<TextRequest>& requests, const Completer::OnText& on_text,
                                              const LanguageModel::Told& told) {
  const double begin = now_s();
  signals_.tasks_run(session_.world().size() == 1);  // ranks cannot agree within a text on where it ends
  std::vector<Completion> found = completer_.complete(requests, output_.logprobs, on_text, [&](size_t answered) {
    if (const int signal = signals_.asked(); signal != 0) throw Interrupted(signal, signal_name(signal));
    if (told) told(answered);
  });
  signals_.tasks_run(false);
  seconds_ += now_s() - begin;
  for (const Completion& c : found) tokens_ += c.generation.tokens.size();
  return found;
}

Completion GenerateRun::stream(const TextRequest& request) {
  const bool shows = leads() && !output_.json;
  const auto show = [&](size_t, const std::string& piece) {
    if (shows) print_out(piece);
  };
  Completion done = complete({request}, show, {}).front();
  if (shows) print_out("\n");
  if (leads() && done.cut > 0)
    print_err(fmt::format("the prompt is longer than the model can read: {} tokens on its left were left out\n", done.cut));
  return done;
}

void GenerateRun::one(const PromptLine& line) {
  const Completion done = stream(line.request);
  if (!leads()) return;
  if (output_.json) return print_out(json_text(completion_json(line, done, output_.logprobs), 2) + "\n");
  if (!output_.logprobs) return;
  std::string table = "\n";
  for (const NewToken& token : done.generation.tokens)
    table += fmt::format("{:9.4f}  {}\n", token.logprob, json_text(nlohmann::json(tokenizer_.decode({&token.id, 1}))));
  print_out(table);
}

void GenerateRun::converse(TextRequest request) {
  constexpr double kPatience = 7 * 24 * 3600;  // ranks wait for a person
  session_.set_time_limit(kPatience);
  if (leads()) print_err("a line and Enter: the model goes on from it; Ctrl-D ends\n");
  while (true) {
    const std::string typed = from_rank_0(session_.world(), [] {
      print_err("> ");
      std::string line;
      return std::getline(std::cin, line) ? line + "\n" : "";
    });
    if (typed.empty()) break;
    request.context = typed.substr(0, typed.size() - 1);
    if (request.context.empty()) continue;
    try {
      completer_.check(request);
    } catch (const UsageError& e) {
      if (leads()) print_err(fmt::format("{}\n", e.what()));
      continue;
    }
    stream(request);
    ++request.sampling.seed;
  }
  if (leads()) print_err("\n");
}

void GenerateRun::batch(const std::vector<PromptLine>& lines) {
  constexpr size_t kAtOnce = 1024;  // then what is done is written, and stays when the rest is interrupted
  for (size_t begin = 0; begin < lines.size(); begin += kAtOnce) {
    const size_t end = std::min(lines.size(), begin + kAtOnce);
    std::vector<TextRequest> requests;
    for (size_t i = begin; i < end; ++i) requests.push_back(lines[i].request);
    const std::vector<Completion> done = complete(requests, {}, [&](size_t answered) { tell_progress(begin + answered, lines.size()); });
    if (!leads()) continue;
    std::string text;
    for (size_t i = begin; i < end; ++i) text += json_text(completion_json(lines[i], done[i - begin], output_.logprobs)) + "\n";
    write(text);
  }
}

void GenerateRun::write(const std::string& lines) {
  if (output_.file.empty()) return print_out(lines);
  if (!file_) file_.emplace(output_.file, OutputFile::Mode::create_new);
  file_->write(lines);
}

void GenerateRun::tell_progress(size_t done, size_t all) {
  constexpr double kInterval = 0.25;  // seconds
  if (!leads() || isatty(STDERR_FILENO) == 0 || now_s() - told_at_ < kInterval) return;
  told_at_ = now_s();
  print_err(fmt::format("\r{} of {} prompts\x1b[K\r", done, all));
}

std::string GenerateRun::speed() const {
  return fmt::format("{} tokens in {:.2f} s, {:.1f} tokens/s", tokens_, seconds_,
                     seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0.0);
}

}  // namespace hlat
