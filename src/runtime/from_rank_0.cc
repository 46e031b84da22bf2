#include "runtime/from_rank_0.h"

#include "checkpoint/index.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

enum class Result : uint8_t { text, usage, damaged, fault, other };

struct Envelope {
  Result result = Result::text;
  size_t bytes = 0;
};

[[noreturn]] void throw_as(Result result, const std::string& words) {
  switch (result) {
    case Result::usage: throw UsageError(words);
    case Result::damaged: throw DamagedCheckpoint(words);
    case Result::fault: throw FaultError(words);
    case Result::text:
    case Result::other: throw Error(words);
  }
  throw Error(words);
}

}  // namespace

std::string from_rank_0(Comm& world, const std::function<std::string()>& work) {
  std::string text;
  Envelope envelope;
  if (world.rank() == 0) try {
      text = work();
    } catch (const DamagedCheckpoint& e) {
      envelope.result = Result::damaged, text = e.what();
    } catch (const UsageError& e) {
      envelope.result = Result::usage, text = e.what();
    } catch (const FaultError& e) {
      envelope.result = Result::fault, text = e.what();
    } catch (const Error& e) {
      envelope.result = Result::other, text = e.what();
    }
  envelope.bytes = text.size();
  envelope = broadcast_value(world, envelope, 0);
  text.resize(envelope.bytes);
  if (envelope.bytes > 0) world.host().broadcast_bytes(text.data(), text.size(), 0);
  if (envelope.result != Result::text) throw_as(envelope.result, text);
  return text;
}

}  // namespace hlat
