// Where an index goes: a folder .hlat next to the data, else, where that cannot be written, the user's cache ($XDG_CACHE_HOME/hlat or
// ~/.cache/hlat), or the folder that is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hlat::reader {

// Best first. `data`: what it is an index of; `tag` tells ways to read it apart, so that they do not take turns in overwriting an
// index. In a folder for many, the name also tells files of equal name in different folders apart.
std::vector<std::string> index_places(const std::string& data, uint64_t tag, const std::string& cache_dir);

// Calls write(place) for the first of the places where a file can be made. UsageError when there is none.
void write_at_first(const std::vector<std::string>& places, const std::string& data, const std::function<void(const std::string&)>& write);

// Whether a file's name is that of an index: one may lie in a folder of data.
bool is_index_name(std::string_view name);

}  // namespace hlat::reader
