// Texts generated on one replica, many at a time: rows that end free their slots of the cache, and waiting requests take their place.
#pragma once

#include "eval/language_model.h"
#include "model/kv_passes.h"

namespace hlat {

// Collective over the replica, with the same requests; all of its ranks get the texts.
std::vector<Generation> generate_all(KvPasses& passes, std::span<const GenerateRequest> requests, const LanguageModel::KeepOn& keep = {},
                                     const LanguageModel::Told& told = {});

}  // namespace hlat
