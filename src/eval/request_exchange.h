// Requests on their way from rank 0, which reads and encodes texts, to the ranks that answer them with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/comm.h"
#include "eval/request.h"

namespace hlat {

struct Asked {
  std::vector<ScoreRequest> scores;
  std::vector<GenerateRequest> prompts;
  std::vector<std::vector<std::string>> stops;  // of each prompt
};

std::string pack(const Asked& asked);
Asked unpack(std::string_view bytes);

// Rank 0 sends; nothing: it will ask no more. Collective, O(log p) messages.
void send_asked(Comm& world, const std::optional<Asked>& asked);
std::optional<Asked> receive_asked(Comm& world);  // the other ranks

}  // namespace hlat
