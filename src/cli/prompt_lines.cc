#include "cli/prompt_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "config/nearest.h"
#include "data/tokenizer/unicode.h"
#include "eval/sampler.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

// Reads the members of a line's object, and collects what is wrong with them.
class LineReader {
 public:
  explicit LineReader(const Json& object) : object_(object) {}

  template <class T>
  void number(const char* key, T& value) {
    if (!object_.contains(key)) return;
    const Json& found = object_[key];
    const bool good = std::is_floating_point_v<T> ? found.is_number()
                      : std::is_unsigned_v<T>     ? found.is_number_unsigned()
                                                  : found.is_number_integer();
    const char* kind = std::is_floating_point_v<T> ? "a number" : std::is_unsigned_v<T> ? "a whole number from 0 on" : "a whole number";
    if (!good) return add(fmt::format("{}: must be {}", key, kind));
    value = found.get<T>();
  }

  void prompt(std::string& value) {
    if (!object_.contains("prompt")) return add("it has no prompt");
    if (!object_["prompt"].is_string()) return add("prompt: must be a text");
    value = object_["prompt"].get<std::string>();
  }

  void stop(std::vector<std::string>& value) {
    if (!object_.contains("stop")) return;
    const Json& found = object_["stop"];
    const bool texts = found.is_array() && std::all_of(found.begin(), found.end(), [](const Json& s) { return s.is_string(); });
    if (!found.is_string() && !texts) return add("stop: must be a text or a list of texts");
    value = found.is_string() ? std::vector{found.get<std::string>()} : found.get<std::vector<std::string>>();
  }

  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  std::vector<std::string>& problems() { return problems_; }

 private:
  const Json& object_;
  std::vector<std::string> problems_;
};

constexpr std::array<std::string_view, 10> kKeys = {"prompt", "max_tokens", "temperature",        "top_k", "top_p",
                                                    "min_p",  "stop",       "repetition_penalty", "seed",  "id"};

Json parse_object(const std::string& line) {
  Json object;
  try {
    object = Json::parse(line);
  } catch (const Json::exception& e) {
    const std::string_view words = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 4: ..."
    fail<UsageError>("not JSON: {}", words.substr(std::min(words.size(), words.find("] ") + 2)));
  }
  if (!object.is_object()) throw UsageError("must be a JSON object, such as {\"prompt\": \"Once upon a time\"}");
  return object;
}

void check_keys(const Json& object, LineReader& reader) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    reader.add(fmt::format("unknown key {}; {}", key, alternatives(key, kKeys)));
  }
}

// What is wrong with a request for a model that reads `max_length` tokens; 0: not known yet.
std::vector<std::string> request_problems(const TextRequest& request, int64_t max_length) {
  std::vector<std::string> problems = sampling_problems(request.sampling);
  std::string buffer;
  for (const std::string& s : request.stop) {
    if (s.empty()) problems.emplace_back("stop: an empty text stops nothing");
    if (tokenizer::unicode::valid(s, buffer).data() != s.data()) problems.emplace_back("stop: is no UTF-8");
  }
  if (max_length > 0 && request.max_tokens >= max_length)
    problems.push_back(
        fmt::format("max_tokens = {}: the model reads {} tokens at a time, prompt and text together", request.max_tokens, max_length));
  return problems;
}

// One problem on each line.
void tell(const std::vector<std::string>& problems) {
  if (!problems.empty()) fail<UsageError>("{}", fmt::join(problems, "\n"));
}

PromptLine read_line(const std::string& line, size_t number, TextRequest request) {
  const Json object = parse_object(line);
  LineReader reader(object);
  check_keys(object, reader);
  reader.prompt(request.context);
  const int64_t usual = std::exchange(request.max_tokens, 1);
  reader.number("max_tokens", request.max_tokens);
  if (request.max_tokens < 1) reader.add("max_tokens: must be 1 or more");
  if (!object.contains("max_tokens")) request.max_tokens = usual;
  reader.number("temperature", request.sampling.temperature);
  reader.number("top_k", request.sampling.top_k);
  reader.number("top_p", request.sampling.top_p);
  reader.number("min_p", request.sampling.min_p);
  reader.number("repetition_penalty", request.sampling.repetition_penalty);
  reader.number("seed", request.sampling.seed);
  reader.stop(request.stop);
  std::vector<std::string>& problems = reader.problems();
  for (std::string& words : request_problems(request, 0)) problems.push_back(std::move(words));
  tell(problems);
  return {.request = std::move(request), .number = number, .id = object.contains("id") ? object["id"] : Json()};
}

// What is wrong with lines, by number.
class Problems {
 public:
  template <class Body>
  void collect(size_t line, const Body& body) {
    try {
      body();
    } catch (const UsageError& e) {
      std::istringstream words(e.what());
      for (std::string one; std::getline(words, one);) found_.push_back(fmt::format("line {}: {}", line, one));
    }
  }

  void tell(const std::string& name) {
    constexpr size_t kShown = 20;
    if (found_.empty()) return;
    const size_t more = found_.size() - std::min(found_.size(), kShown);
    found_.resize(found_.size() - more);
    fail<UsageError>("{}: lines that cannot be used; nothing was generated\n  {}{}", name, fmt::join(found_, "\n  "),
                     more > 0 ? fmt::format("\n  and {} more", more) : "");
  }

 private:
  std::vector<std::string> found_;
};

std::string_view name_of(EndReason reason) {
  switch (reason) {
    case EndReason::end_token: return "end";
    case EndReason::stopped: return "stop";
    case EndReason::length: break;
  }
  return "length";
}

}  // namespace

void check_request(const TextRequest& request, int64_t max_length) { tell(request_problems(request, max_length)); }

void check_prompt_lines(const std::vector<PromptLine>& lines, const std::string& name,
                        const std::function<void(const TextRequest&)>& check) {
  Problems problems;
  for (const PromptLine& line : lines) problems.collect(line.number, [&] { check(line.request); });
  problems.tell(name);
}

std::vector<PromptLine> read_prompt_lines(const std::string& text, const std::string& name, const TextRequest& defaults) {
  std::vector<PromptLine> lines;
  Problems problems;
  std::istringstream in(text);
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    TextRequest own = defaults;
    own.sampling.seed += lines.size();
    problems.collect(number, [&] { lines.push_back(read_line(line, number, std::move(own))); });
  }
  problems.tell(name);
  if (lines.empty()) fail<UsageError>("{}: there is no prompt in it", name);
  return lines;
}

size_t count_answers(const std::string& answers, const std::string& name, const std::vector<PromptLine>& lines) {
  size_t count = 0;
  std::istringstream in(answers);
  for (std::string line; std::getline(in, line) && !in.eof(); ++count) {
    const Json answer = Json::parse(line, nullptr, false);
    const bool fits = count < lines.size() && answer.is_object() && answer.value("prompt", Json()) == lines[count].request.context &&
                      answer.value("id", Json()) == lines[count].id;
    if (!fits) fail<UsageError>("{}: line {} is no answer to prompt {} of this batch; give another --out", name, count + 1, count + 1);
  }
  return count;
}

nlohmann::ordered_json completion_json(const PromptLine& line, const Completion& completion, bool logprobs) {
  Json json;
  if (!line.id.is_null()) json["id"] = line.id;
  json["prompt"] = line.request.context;
  json["text"] = completion.text;
  json["tokens"] = Json::array();
  for (const NewToken& token : completion.generation.tokens) json["tokens"].push_back(token.id);
  json["reason"] = name_of(completion.generation.reason);
  if (logprobs) {
    json["logprobs"] = Json::array();
    for (const NewToken& token : completion.generation.tokens) json["logprobs"].push_back(token.logprob);
  }
  json["prompt_tokens"] = completion.prompt_tokens;
  if (completion.cut > 0) json["prompt_tokens_cut"] = completion.cut;
  if (line.request.sampling.temperature > 0) json["seed"] = line.request.sampling.seed;
  return json;
}

}  // namespace hlat
