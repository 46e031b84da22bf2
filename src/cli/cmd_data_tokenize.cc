// hlat data tokenize: text to ids, one document a line, and back. Plain text is one document; with --jsonl each line is one,
// and batches of lines are shared among threads. Output keeps the order of the input.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/json_text.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "config/nearest_file.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat {
namespace {

struct TokenizeArgs {
  std::string tokenizer;
  std::string input = "-";
  std::string field;  // of JSON objects; empty: plain text
  bool decode = false;
  int threads = 0;  // 0: all
};

// Lines or the whole of a file or of standard input.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    if (path == "-") return;
    std::error_code unknown;
    if (std::filesystem::is_directory(path, unknown)) fail<UsageError>("{}: is a folder{}", path, file_hint(path));
    file_.open(path, std::ios::binary);
    if (!file_) fail<UsageError>("{}: cannot be read: {}{}", path, std::strerror(errno), errno == ENOENT ? file_hint(path) : "");
    stream_ = &file_;
  }

  std::string all() {
    std::string text{std::istreambuf_iterator<char>(*stream_), std::istreambuf_iterator<char>()};
    check();
    return text;
  }
  bool line(std::string& out) {
    if (std::getline(*stream_, out)) return true;
    check();
    return false;
  }
  const std::string& name() const { return name_; }

 private:
  void check() const {
    if (stream_->bad()) throw UsageError(fmt::format("{}: cannot be read", name_));
  }

  std::string name_;
  std::ifstream file_;
  std::istream* stream_ = &std::cin;
};

void write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail<FaultError>("cannot write to standard output");
}

// "; there are id, text" for an object whose field is not there.
std::string fields_of(const simdjson::simdjson_result<simdjson::dom::element>& value) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return "; the line is not an object";
  std::vector<std::string_view> names;
  for (const auto field : object) names.push_back(field.key);
  return names.empty() ? "; the object is empty" : fmt::format("; the fields are {}", fmt::join(names, ", "));
}

// One thread's share of the work on a line.
class LineWorker {
 public:
  LineWorker(const Tokenizer& tokenizer, const TokenizeArgs& args) : tokenizer_(tokenizer), args_(args), encoder_(tokenizer.encoder()) {}

  // What the line becomes. A UsageError without the place.
  std::string work(const std::string& line) {
    if (args_.decode) return decode(line);
    const simdjson::padded_string padded(line);
    std::string_view text;
    const auto object = json_.parse(padded);
    if (object.error() != simdjson::SUCCESS) throw UsageError(fmt::format("not JSON: {}", simdjson::error_message(object.error())));
    const auto error = object.at_key(args_.field).get(text);
    if (error != simdjson::SUCCESS) throw UsageError(fmt::format("no text in the field '{}'{}", args_.field, fields_of(object)));
    return encode(text);
  }

  std::string encode(std::string_view text) {
    ids_.clear();
    encoder_->encode(text, ids_);
    return fmt::format("{}\n", fmt::join(ids_, " "));
  }

 private:
  std::string decode(const std::string& line) {
    ids_.clear();
    for (const char *p = line.data(), *end = p + line.size(); p < end;) {
      if (*p == ' ' || *p == '\t' || *p == '\r') {
        ++p;
        continue;
      }
      int32_t id = 0;
      const auto [next, error] = std::from_chars(p, end, id);
      if (error != std::errc() || (next < end && *next != ' ' && *next != '\t' && *next != '\r')) throw UsageError("not a list of ids");
      if (id < 0 || id >= tokenizer_.vocab_size())
        throw UsageError(fmt::format("the id {} is not in the vocabulary, which has 0 to {}", id, tokenizer_.vocab_size() - 1));
      ids_.push_back(id);
      p = next;
    }
    const std::string text = tokenizer_.decode(ids_);
    if (args_.field.empty()) return text;
    return json_text(nlohmann::json{{args_.field, text}}) + "\n";
  }

  const Tokenizer& tokenizer_;
  const TokenizeArgs& args_;
  std::unique_ptr<Encoder> encoder_;
  simdjson::dom::parser json_;
  std::vector<int32_t> ids_;
};

struct LineBatch {
  std::vector<std::string> lines;
  std::vector<std::string> results;
  std::vector<std::string> problems;
};

void run_lines(const Tokenizer& tokenizer, const TokenizeArgs& args, Input& input) {
  constexpr size_t kBatchBytes = size_t{16} << 20;
  const Threads threads(args.threads);
  std::vector<std::unique_ptr<LineWorker>> workers;
  for (int i = 0; i < threads.count(); ++i) workers.push_back(std::make_unique<LineWorker>(tokenizer, args));
  const std::string separator = args.decode && args.field.empty() ? "\n" : "";
  bool first = true;
  size_t done = 0;
  for (bool more = true; more;) {
    LineBatch batch;
    std::string line;
    for (size_t bytes = 0; bytes < kBatchBytes && (more = input.line(line)); bytes += batch.lines.back().size())
      batch.lines.push_back(line);
    batch.results.resize(batch.lines.size());
    batch.problems.resize(batch.lines.size());
    threads.items(static_cast<int64_t>(batch.lines.size()), [&](int64_t i, int thread) {
      const auto at = static_cast<size_t>(i);
      const bool blank = batch.lines[at].find_first_not_of(" \t\r") == std::string::npos;
      if (blank && !args.decode) return;  // between objects; a document without ids is an empty line
      try {
        batch.results[at] = workers[static_cast<size_t>(thread)]->work(batch.lines[at]);
      } catch (const Error& e) {
        batch.problems[at] = e.what();
      }
    });
    for (size_t i = 0; i < batch.lines.size(); ++i) {
      if (!batch.problems[i].empty()) throw UsageError(fmt::format("{}:{}: {}", input.name(), done + i + 1, batch.problems[i]));
      if (!first) write(separator);
      first = false;
      write(batch.results[i]);
    }
    done += batch.lines.size();
  }
}

void run_tokenize(const TokenizeArgs& given) {
  TokenizeArgs args = given;
  if (args.threads == 0) args.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto tokenizer = load_tokenizer(args.tokenizer);
  Input input(args.input);
  if (args.decode || !args.field.empty()) return run_lines(*tokenizer, args, input);
  write(LineWorker(*tokenizer, args).encode(input.all()));
}

}  // namespace

void add_data_tokenize_command(CLI::App& data) {
  const auto args = std::make_shared<TokenizeArgs>();
  CLI::App* command = data.add_subcommand("tokenize", "text to token ids, one document a line, and back");
  command->add_option("--tokenizer", args->tokenizer, "tokenizer.json, tekken.json, a .model file of SentencePiece, or ranks of tiktoken")
      ->required()
      ->type_name("FILE");
  command->add_option("input", args->input, "the text; default: standard input")->type_name("FILE");
  command->add_option("--jsonl", args->field, "each line is a JSON object, its text in this field; default: one document of plain text")
      ->type_name("FIELD");
  command->add_flag("--decode", args->decode, "the input is ids, a document a line: print their text (with --jsonl as objects)");
  command->add_option("--threads", args->threads, "threads, for many documents; default: all cores")
      ->check(within(1, 1024))
      ->type_name("N");
  show_example(*command, "hlat data tokenize --tokenizer tokenizer.json --jsonl text web.jsonl > ids.txt");
  command->callback([args] { run_tokenize(*args); });
}

}  // namespace hlat
