#include "cli/generate_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "base/json_text.h"
#include "base/machine.h"
#include "cli/print.h"
#include "comm/host_exchange.h"
#include "runtime/from_rank_0.h"

namespace hlat {

namespace {

constexpr size_t kFirstBlock = 64, kLargestBlock = 1024;

// Prompts of the next block, after one of `prompts`: what takes some seconds. Fewer than the least would leave the model idle.
size_t block_after(size_t prompts, double seconds) {
  constexpr double kBlockSeconds = 10;
  constexpr size_t kLeast = 32;
  const double fit = static_cast<double>(prompts) * kBlockSeconds / std::max(seconds, 1e-3);
  return std::clamp(static_cast<size_t>(fit), kLeast, kLargestBlock);
}

}  // namespace

void check_output(const GenerateOutput& output) {
  const std::string& file = output.file;
  if (std::filesystem::exists(file)) {
    if (output.goes_on) return;
    fail<UsageError>("--out {}: it is there already; give another name, or --continue to add to its answers", file);
  }
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail_storage(errno, "--out: cannot write to the folder of " + file);
}

std::vector<Completion> GenerateRun::complete(const std::vector<TextRequest>& requests, const Completer::OnText& on_text,
                                              const LanguageModel::Told& told) {
  const double begin = now_s();
  std::vector<Completion> found = completer_.complete(
      requests, output_.logprobs, on_text,
      [&](size_t answered) {
        if (const int signal = signals_.asked(); signal != 0) throw Interrupted(signal, signal_name(signal));
        if (told) told(answered);
      },
      [&] { return signals_.text_ends(); });
  seconds_ += now_s() - begin;
  for (const Completion& c : found) tokens_ += c.generation.tokens.size();
  return found;
}

Completion GenerateRun::stream(const TextRequest& request) {
  const bool shows = leads() && !output_.json;
  const auto show = [&](size_t, const std::string& piece) {
    if (shows) print_out(piece);
  };
  signals_.tasks_run(signals_wait());
  Completion done = complete({request}, show, {}).front();
  signals_.tasks_run(false);
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
  signals_.converse();
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
    one({.request = request});
    ++request.sampling.seed;
  }
  if (leads()) print_err("\n");
}

size_t GenerateRun::block(const std::vector<PromptLine>& lines, size_t begin, size_t size, BatchShown* shown) {
  const size_t end = std::min(lines.size(), begin + size);
  std::vector<TextRequest> requests;
  for (size_t i = begin; i < end; ++i) requests.push_back(lines[i].request);
  const std::vector<Completion> done = complete(requests, {}, [&](size_t answered) {
    if (shown != nullptr) shown->show(begin + answered);
  });
  if (!leads()) return end;
  std::string text;
  for (size_t i = begin; i < end; ++i) text += json_text(completion_json(lines[i], done[i - begin], output_.logprobs)) + "\n";
  if (output_.file.empty()) shown->end_line();
  write(text);
  return end;
}

void GenerateRun::batch(const std::vector<PromptLine>& lines, size_t done) {
  std::optional<BatchShown> shown;
  if (leads()) shown.emplace(std::cerr, progress_options(STDERR_FILENO, 0), done, lines.size());
  signals_.tasks_run(signals_wait());
  try {
    for (size_t size = kFirstBlock; done < lines.size();) {
      const double start = now_s();
      const size_t before = std::exchange(done, block(lines, done, size, shown ? &*shown : nullptr));
      size = broadcast_value(session_.world(), block_after(done - before, now_s() - start), 0);
    }
  } catch (const Interrupted&) {
    shown.reset();
    const std::string where = output_.file.empty() ? "" : fmt::format(", in {}; with --continue the same command goes on", output_.file);
    if (leads()) print_err(fmt::format("{} of {} prompts are answered{}\n", done, lines.size(), where));
    throw;
  }
  signals_.tasks_run(false);
}

void GenerateRun::write(const std::string& lines) {
  if (output_.file.empty()) return print_out(lines);
  if (!file_) file_.emplace(output_.file, output_.goes_on ? OutputFile::Mode::append : OutputFile::Mode::create_new);
  file_->write(lines);
}

std::string GenerateRun::speed() const {
  return fmt::format("{} tokens in {:.2f} s, {:.1f} tokens/s", tokens_, seconds_,
                     seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0.0);
}

}  // namespace hlat
