#include "data/embedded/corpus.h"

#include "base/error.h"

namespace hlat {
namespace {

// Random words set aside for one document; a story makes about 40 choices of two words each.
constexpr uint64_t kWordsPerDocument = 1024;

// A story: somebody goes somewhere, finds something, something happens, all ends well.
// What is remembered: the hero (name, pronouns), the kind of place (upstairs is in a house), the thing (number, pronouns) and
// an animal (its voice). Most mentions follow soon, so a row that starts inside a story loses little.
constexpr std::string_view kStories = R"(
@girl name they their They = Lily Mia Rosa Ella Anna Zoe / she her She
@boy name they their They = Tom Ben Leo Sam Jack Otto / he his He
@animal noun cried = fox / yelped | owl / hooted | frog / croaked | duck / quacked | mouse / squeaked | bear / growled
  | cat / purred | crow / cawed | bee / buzzed | snake / hissed
@place noun kind = forest meadow hill / wood | beach river lake / water | market square station / town | attic cellar kitchen / house
@one noun it was them It = acorn feather mushroom nest flower shell pearl boat bottle anchor kite drum hat ticket coin key lamp clock
  mirror teapot / it was it It
@many noun it was them It = berries nuts leaves pebbles crabs oars marbles buttons balloons candles letters cookies / they were them They

story: <opening> <find> <event>

weather: sunny | rainy | windy | snowy | foggy | quiet | misty | bright | dark | frosty | stormy | chilly
time: 3* morning | 2* afternoon | 2* evening | day | night
mood: happy | sad | hungry | sleepy | friendly | grumpy | lonely | brave | clever | shy | curious | cheerful | gentle | proud | lazy
  | kind | silly | stubborn | nervous | polite | noisy | bored | calm | tired
adj: shiny | tiny | dusty | strange | lovely | broken | magic | round | soft | warm | smooth | heavy | wet | sweet | little | funny
  | fancy | crooked | clean | thin | bent | lucky
odd: 3* old | odd | ugly | enormous | unusual
color: red | blue | green | golden | silver | purple | yellow | white | black | pink
object: rope | ladder | bucket | net | hammer | lantern | broom | whistle | bench | barrel | basket | blanket | wagon | fence
  | curtain | chest | tower | raft | bridge | ship | pillow | mask | flag | statue
stuff: honey | cheese | cake | soup | bread | tea | jam | snow | rain | smoke | moss | sand | butter | pepper | sugar | ink | paint
  | wool | gold | mud | milk | glue
dream: dragons | castles | pirates | whales | clouds | trains | giants | stars | wizards | rockets | ghosts | queens
did: smiled | laughed | nodded | giggled | blushed | bowed | winked | sighed | shrugged | danced | sang | waved | whistled | jumped
how: slowly | quickly | quietly | happily | sadly | loudly | gently | bravely | softly | proudly | politely | sleepily
hobby: sing | dance | read | draw | think | nap | whistle | play | fish | swim
went: 2* went | 2* walked | ran | wandered | hurried | skipped | rode | marched
found: 2* found | saw | noticed | spotted | discovered
took: took | brought | carried | dragged
made: 2* built | made | found | painted | drew
kin: mother | sister | grandmother | aunt | father | brother | grandfather | uncle
love: love | want | smell | hate | sell
stop: 3* . | !

opening: 4* One <weather> <time> , <hero> <went> to the <hidden> [place=place] .
  | 3* Once a <mood> <child> <went> to the <hidden> [place=place] .
  | 3* <hero> the <mood> <went> to the <hidden> [place=place] .
  | 2* On a <weather> <time> , <hero> and {hero.their} <mood> <kin> <went> to the [place=place] .
  | 2* Every <time> <hero> <went> to the <hidden> [place=place] to <hobby> .
hero: [hero=girl] | [hero=boy]
child: girl named [hero=girl] | boy named [hero=boy]
hidden: hidden | busy | empty | silent | famous | secret | little | old | noisy | lovely

find: <there:place.kind> {hero.they} <found> <thing> <detail>
there_wood: 5* <then> | Outdoors | Uphill | Overhead
there_water: 5* <then> | Ashore | Afloat | Downstream
there_town: 5* <then> | Downtown | Outside | Nearby
there_house: 5* <then> | Upstairs | Downstairs | Indoors
then: There | Suddenly | Soon | Later | Finally | Somehow
thing: 4* a <adj> <color> [thing=one] | 2* an <odd> [thing=one] | 3* some <adj> [thing=many]
detail: 3* <stop> | 2* <under> a <color> <object> <stop> | covered in <stuff> <stop> | that smelled of <stuff> and <stuff> .
under: under | behind | beside | near | inside

event: 2* {thing.It} {thing.was} <adj> and <adj> . <second> | 4* <friend> | 3* <trouble> | 2* <gift>
second: 4* <friend> | 3* <trouble> | 2* <gift>

friend: Then a <mood> [friend=animal] {friend.cried} <how> , `` <speech> '' <answer>
speech: 3* I <love> <stuff> and <stuff> <stop> | 2* Please bring me <color> <stuff> <stop> | 2* What a <adj> <object> !
  | 2* Do you <hobby> ? | May I have {thing.them} ?
answer: 3* {hero.They} <did> <reply> . <together> | `` I only have <color> <stuff> , '' said {hero.name} <how> . <together>
reply: and <gave> {thing.them} away | <how>
gave: 3* gave | threw | hid | locked
together: 3* Together they <made> a <adj> <color> <object> <stop>
  | 2* Now {hero.they} and the {friend.noun} are <mood> friends <stop>
  | 2* They shared <stuff> , <stuff> and <stuff> .
  | 2* All <time> they <did> <how> .

trouble: But <mishap> <stop> <rescue> <night>
mishap: 3* {thing.it} {thing.was} too <adj> | 2* the <wind> <blew> {thing.them} into a <object>
  | 2* a <mood> [friend=animal] <stole> {thing.them}
wind: wind | storm | flood | rain
blew: blew | carried | washed | swept
stole: stole | ate | hid | broke | licked
rescue: 3* Luckily {hero.their} <mood> <kin> had a <adj> <color> <object> .
  | 2* {hero.They} <did> <how> and called {hero.their} <mood> <kin> .
  | 2* So {hero.they} <made> a <adj> <color> <object> .

gift: {hero.They} <took> {thing.them} to {hero.their} <mood> <kin> . `` <praise> '' was the <mood> answer . <night>
praise: 3* How <adj> ! | Thank you , | 2* What a <adj> gift ! | I <love> {thing.them} ,
night: 3* That night {hero.they} dreamed of <color> <dream> and <adj> <dream> .
  | 2* {hero.name} was <mood> but <mood> <stop>
  | 2* What a <weather> <time> !
  | 2* {hero.They} <did> <how> all <time> .
)";

class StoryReader : public DocumentReader {
 public:
  explicit StoryReader(const EmbeddedCorpus& corpus) : corpus_(corpus) {}
  uint64_t read(uint64_t document, uint64_t, uint64_t, Document& out) override {
    out = corpus_.document(document);
    return 0;
  }
  uint64_t cut(uint64_t, uint64_t) override { return 0; }

 private:
  const EmbeddedCorpus& corpus_;
};

}  // namespace

EmbeddedCorpus::EmbeddedCorpus(uint64_t seed) : seed_(seed), grammar_(kStories), tokenizer_(grammar_.words()) {}

Document EmbeddedCorpus::document(uint64_t index) const {
  RandomStream random({seed_, hash_name("embedded"), Noise::data, 0}, index * kWordsPerDocument);
  Document out = grammar_.sample(random);
  HLAT_CHECK(random.position() <= (index + 1) * kWordsPerDocument, "document {} drew {} random words", index,
             random.position() - index * kWordsPerDocument);
  return out;
}

uint64_t EmbeddedCorpus::hash(uint64_t index) const {
  const auto words = philox_block({seed_, hash_name("embedded hash"), Noise::data, 0}, index);
  return static_cast<uint64_t>(words[1]) << 32 | words[0];
}

std::unique_ptr<DocumentReader> EmbeddedCorpus::reader() const { return std::make_unique<StoryReader>(*this); }

}  // namespace hlat
