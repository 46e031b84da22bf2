// Prompts of `hlat generate --batch`: a JSON object on each line, with the prompt and what is different for it. What comes of each is a
// line again.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/completion.h"

namespace hlat {

struct PromptLine {
  TextRequest request;
  size_t number = 0;                    // of its line, from 1; 0: it is none
  nlohmann::ordered_json id = nullptr;  // the line's own "id", handed on; null: none
};

// `defaults` is for what a line leaves open. A line without a seed has that of the defaults plus its number, from 0: lines with the same
// prompt become different texts. Empty lines are none. UsageError, with all lines that cannot be used, by number; `name` is the file's.
std::vector<PromptLine> read_prompt_lines(const std::string& text, const std::string& name, const TextRequest& defaults);

// UsageError with all lines for which `check` throws one.
void check_prompt_lines(const std::vector<PromptLine>& lines, const std::string& name,
                        const std::function<void(const TextRequest&)>& check);

// UsageError, with all problems, unless all of a request can be done by a model that reads `max_length` tokens; 0: not known yet.
void check_request(const TextRequest& request, int64_t max_length);

// How many of the prompts, from the first on, a file of answers has; a line without its end is none. UsageError, with the file's name,
// where it answers others.
size_t count_answers(const std::string& answers, const std::string& name, const std::vector<PromptLine>& lines);

// {"prompt", "text", "tokens", "reason", ...} of one prompt.
nlohmann::ordered_json completion_json(const PromptLine& line, const Completion& completion, bool logprobs);

}  // namespace hlat
