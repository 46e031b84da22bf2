// What other training programs (Hugging Face, Megatron, NeMo and NxDT, nanoGPT, torchtitan, DeepSpeed) call our keys and values, so that a
// message about one of their names can give ours.
#pragma once

#include <string>
#include <string_view>

namespace hlat {

// What stands here for a key of another program, to follow "unknown key; ": a key of ours or why there is none. Empty when the name is
// not known. Case and the dashes of an option do not matter.
std::string foreign_key(std::string_view name);

// The same for one of their sections, which is one of ours: "distributed_strategy" is "parallel". Empty when it is not known.
std::string_view foreign_section(std::string_view name);

// For a value that `key` refused, what to write instead, to follow "must be ...; ". Empty when it is not known.
std::string foreign_value(std::string_view key, std::string_view text);

}  // namespace hlat
