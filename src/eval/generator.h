// Texts generated on one replica, many at a time: rows that end free their slots of the cache, and waiting requests take their place.
//
// A pass has one token of each row that is generating, and beside them as much of waiting prompts as there is room for. A beginning that
// prompts share (few-shot examples, several samples of one prompt) is computed once and stays in the cache until the last of them has
// ended. A row has its slots, to its last token, before it starts: nothing is ever thrown out again.
#pragma once

#include "eval/language_model.h"
#include "model/kv_passes.h"

namespace hlat {

// Collective over the replica, with the same requests; all of its ranks get the texts. UsageError, before anything is computed, for a
// Sampling that is none; NumericalError where the model has no distribution.
std::vector<Generation> generate_all(KvPasses& passes, std::span<const GenerateRequest> requests, const LanguageModel::KeepOn& keep = {},
                                     const LanguageModel::Told& told = {});

}  // namespace hlat
