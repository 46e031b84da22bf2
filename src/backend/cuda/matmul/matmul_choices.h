// Which cuBLASLt algorithm a matmul runs with, remembered on local disk: measuring again could choose another one, and then a run
// would not repeat bit by bit.
//
// One text file, one line per choice: key, algorithm (64 bytes in hex), workspace, microseconds, checksum of the line. The key names
// device, multiprocessors, library version, shape, layouts and types, so a file from elsewhere only holds keys nobody asks for. Lines
// that are broken are dropped. A change is written next to the file and renamed over it, under a lock: of several ranks that measured
// the same shape the first decides, and the others take its choice.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hlat {

struct MatmulChoice {
  std::array<uint64_t, 8> algo{};  // the bits of a cublasLtMatmulAlgo_t
  uint64_t workspace = 0;
  double microseconds = 0;
};

std::string algo_text(const MatmulChoice& choice);              // its 64 bytes in hexadecimal digits
std::optional<MatmulChoice> parse_algo(std::string_view text);  // a choice of that algorithm; none: not such a text

class MatmulChoices {
 public:
  explicit MatmulChoices(std::string dir);  // "": nothing is kept on disk

  std::optional<MatmulChoice> find(const std::string& key) const;
  // The choice to use from now on: this one, or the one another process stored first. `replace` overrules what is stored.
  MatmulChoice add(const std::string& key, const MatmulChoice& choice, bool replace);
  bool on_disk() const { return !dir_.empty(); }
  bool empty() const { return choices_.empty(); }
  const std::string& problem() const { return problem_; }  // why choices are not on disk, or empty

 private:
  void read();
  void write();

  std::string dir_;
  std::map<std::string, MatmulChoice> choices_;
  std::string problem_;
};

}  // namespace hlat
