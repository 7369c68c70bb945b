// The words of `fxopt help TOPIC`.
#include "cli/topics.h"

#include "core/text.h"
#include "ir/device/profile.h"
#include "ir/step/tag_rules.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

constexpr std::string_view kExitCodes =
    R"(0   done, and every gate holds
1   a mistake in fxopt; opt writes a reproducer and prints its place (none after a crash)
2   the command line is not understood
3   an input is malformed, or breaks an invariant where a valid graph is needed
4   a result, not a malfunction: broken invariants or another result than --against (verify), a pass's output failed
    the verifier or the proof, a pass refused a tag or a phase mark, a tag that --strict-tags does not accept, or
    outputs that differ from --expect (run)
5   a result, not a malfunction: a limit was exceeded, such as --budget
6   a result, not a malfunction: the collectives of ranks do not fit together (ranks)
7   infeasible (unused so far)
8   unsupported op, or a size that the request needs is unknown
9   no memory, or a device, driver or collective failed
10  a file or disk error, or standard output did not take everything

With several inputs each is worked on, whatever became of the others, also where fxopt crashes or the
kernel kills it for want of memory; the code is that of the first error in the order of the inputs.
With --json the envelope reports such a crash. Each input costs a fork, some 10 ms.
)";

constexpr std::string_view kControlDeps =
    R"(A control dependency says that one node comes before another without handing it data: `order`
(issued first), `data_ready` (complete first), `keep_alive` (its storage lives at least until here).
In text: %m = aten.mm.default(%x, %w) {control=[order %wait]}.

PyTorch says it with an op that hides the node in a subgraph:
%m = higher_order.control_deps((%wait,), %subgraph_m, %x, %w). opt and mem lower that to control
dependencies when they have read a graph, so that passes and peaks see the node itself;
--raise-control-deps writes the op again, as PyTorch expects it. A body that raising would not give
back exactly, such as one that hands values through, stays an op; --report counts both.
convert --lower-control-deps and --raise-control-deps do nothing else.
)";

constexpr std::string_view kProofs =
    R"(After each pass that changed more than phases and tags, opt proves that the graph computes the same: outputs,
what is written into inputs, who shares memory, random draws, collectives and other effects. A pass that is
wrong stops with FX0420 and a reproducer; what cannot be told is the warning `unproved` (an error with --strict).

verify proves of any two files that one computes what the other does:

  fxopt verify AFTER --against BEFORE
  fxopt verify FORWARD BACKWARD --step --against JOINT
  fxopt verify AFTER --against BEFORE --allow dead-draws,dead-collectives,dead-assertions

The answer is one of three:
  proved      by the sizes and strides that BEFORE records; those of AFTER are not believed
  differs     what differs first, and the first call that BEFORE does not have (exit 4)
  undecided   a fact is missing, most often what a view shows (exit 4 with --strict); with --allow also where a law may
              explain the first call that BEFORE does not have, and its conditions were not seen to hold (exit 4)
"differs" says that no call of BEFORE computes it, not that numbers differ: add(b, a) for add(a, b) differs.

The file that opt writes says which passes were proved, by which version of fxopt, and what that rests on: views whose
sizes were taken as recorded, and views that may be copies, told by storage ids alone. verify says whether the
graph is still the one that was proved. Names and tags may be changed afterwards, calls may not; where dead draws may be
left out, the names of draws may not either.

--numerics says how far passes may change results: exact (default), reorders-reductions, changes-numerics.)";

constexpr std::string_view kSteps =
    R"(A step is a list of runs of graphs: one graph alone, a forward and a backward graph, microbatches,
pipeline stages. --step makes mem, opt, verify and diff take their files together as one step, or all
graphs of one file:

  fxopt mem --step forward.pb backward.pb
  fxopt diff --step old_forward.pb old_backward.pb forward.pb backward.pb

The runs are the file's `invocations`. Without any, each graph that nothing calls runs once: forward,
then backward, then optimizer, by the kinds of the graphs. An input of a run is
  what a binding of its invocation says;
  for a saved value, the forward output it was saved from, or else the output of the same name;
  for a parameter, buffer, constant or optimizer state, that of the same name in an earlier run;
  else an input of the step. Tangents, and what a stage receives, are there from their run on; other
  inputs from the begin.
The gradients that an optimizer graph takes need bindings: nothing else says which they are.
The report says how many inputs each way gave, and how many by their names alone.

Between runs happens what PyTorch's runtime does. The new value of a mutated input is copied into it
and goes. A saved value ends with its last reader in backward. A gradient that a second run of a graph
returns for the same parameter is added to the first one and goes. The caller keeps all other outputs.

In reports a node is %RUN.NAME, as %backward.mm_3. Files of one step must agree about what they both
name: symbols, process groups, ranks. opt --step writes one file with all graphs, and with the
bindings, which then depend on no names.
)";

constexpr std::string_view kFormats =
    R"(pb    .pb    binary protobuf: exchange, the smallest and fastest. schemas/fxgraph.proto
fxg   .fxg   text: one node a line, for reading, tests and review
json  .json  protobuf's JSON mapping, for scripts

All three hold the same content; converting loses nothing. Inputs are recognised by their content,
outputs by their extension or --format. '-' is standard input or output; a graph on standard output,
a device or a pipe is text unless --format says otherwise. Names that end in .zst are compressed. Outputs are written
to a new file that replaces the old one at the end, so a failure leaves the old file as it was.
)";

constexpr std::string_view kJson =
    R"(--json prints one object to standard output, --json=FILE writes it to a file, also on failure:

  schema    "fxopt.COMMAND/1"; the number changes when a key changes its meaning or goes
  tool      name and version
  command   the command line
  ok, exit  whether the exit code is 0, and the exit code
  errors    each with code, message, hint, and where: file, line, column, byte, graph, node, field,
            module_path, source; null where unknown
  warnings  each with code, message and where
  result    what the command has to say; files has an object for each input, with file and ok (no
            error); numbers of bytes are integers; position counts the nodes before, from 0

The same call gives the same object: it holds no time of day, and durations only with --timing. When
the object goes to standard output nothing else does, so a graph needs -o FILE.
)";

constexpr std::string_view kMemory =
    R"(The ideal peak is the largest number of bytes in live storages while the graph runs in schedule
order. Storages, not tensors: views share one. Nothing is rounded up.

  inputs and attributes are live throughout, unless donated; with --input-lifetime boxed all but
    parameters, buffers, optimizer state and constants end at their last use
  what the graph returns is live to the end
  a node's inputs and outputs coexist; a tuple holds its elements until the last getitem
  what a collective reads and makes is held until its wait
  what a keep_alive control dependency names is held until the node that has it

Who shares a storage follows from the ops, and from the file where they are silent. A size that
depends on a symbol without a value is unknown and said so, never zero. GiB is 2^30 bytes, GB is 10^9.

Where sizes depend on symbols, peaks are of the file's hints, and the ideal peak is also bounded over the
ranges of all symbols. --symbol gives others: s0=4096, the ends s0=min and s0=max of the file's range, or
s0=2..64, which narrows it (the hint stays, or the end next to it). 'u*=128' is for all that match.

--device h100 adds what kernels take besides their outputs, from a profile (`fxopt help devices`):
the requested peak then stands above the ideal one, and what lies outside the allocator is listed.

For CUDA devices the peaks of PyTorch's caching allocator (2.15) follow, run over the same storages in
the order of eager execution on one stream, with classic and with expandable segments.

  requested  what was asked for          active    with what streams still hold
  allocated  after rounding, splitting   reserved  segments taken from the device

--alloc-conf takes the text of PYTORCH_ALLOC_CONF. With --device or --device-memory 80GiB the report begins
with the answer: whether the step fits, with how much to spare, or the node at which memory runs out. Where
it does not fit, or a --budget is broken, recompute policies are tried on a copy of the graph (per-op, then
full); the report names the first that is enough, with its peak and its added work.

--comm-lifetime wait is the process group that keeps references until the wait. record_stream is the one
that records its stream on tensors: what only a collective still has is freed by its owner, at the
collective or after its last other reader. It leaves allocated at once, but active and requested only
at the wait, where the stream's events are taken to be done: nothing before it in the schedule says that
they are. No other peak changes, unless memory runs out: an allocation that fails waits for the events.

--steady is about a step that is not the first: optimizer state (--optimizer) for each parameter with
a gradient, the gradients that are added to (--gradients), and segments as steps before leave them.

Other forms of the report, each to a FILE, any of them in one call:

  --html      a page that loads nothing: live bytes over the nodes by class, to zoom and to hover;
              reports of several graphs, files or devices can be laid over each other
  --markdown  for a pull request: peaks, verdicts of limits; with --baseline what has grown
  --trace     trace events for ui.perfetto.dev or chrome://tracing; a node takes one microsecond
  --snapshot  a memory snapshot of PyTorch, for its memory_viz

The report lists the saved values that are live at the peak only because backward reads them, cheapest to
recompute first; identical calls share a row. Bytes are net of the inputs that would have to be kept
instead. Each row assumes that only this call is recomputed. The peak may then move; `fxopt explain`
simulates that. The time is that of a roofline: a lower bound.

Limits, each an exit code of 5 when it is broken:

  --budget 70GiB                      on the peak that is described; reserved=70GiB on another
  --must-fit                          on what --device has, or --device-memory gives
  --baseline FILE --max-growth 1%     on what a peak has grown by; the storages that grew are named
  --baseline FILE --max-ratio reserved=1.10
  --baseline FILE --update-baseline   writes the file that later calls are compared with

A baseline knows a graph by its file's place, as far as it takes to tell it from the other files of the
call (A/step.pb and B/step.pb, else step.pb), and by its own name. An update replaces the files of the call
and keeps the others, if they were measured with the same options. End its name in .zst: it is then about
40 times smaller. --json has each growth as fields.
)";

constexpr std::string_view kDevices =
    R"(--device takes the names of profiles, with commas between them: devices such as h100, and versions of
a framework such as torch-2.15. Without a framework the newest one is taken. A word with a '/' is a file,
as in ./mine.device; what it says replaces what those before it say. One statement a line, # begins a
comment:

  constant device.sms = 132
  define twice(x) = 2 * x
  include FILE                               of the same folder, or built in
  work aten.mm.* = 2 * self.numel * mat2.last.1   operations of a call
  flops bf16 = 989400000000000               dense, per second
  bandwidth = 3350000000000                  bytes per second
  collective all-gather = EXPR [estimate]    nanoseconds, of bytes, moved, group.ranks, group.nodes
  outside context = 536870912 [estimate]     outside the allocator
  outside-communicator ring = EXPR [source]  for each process group that collectives use
  temporary aten.mm.default copy = EXPR [source]       before the outputs, until the call returns
  workspace aten.mm.* cublas = EXPR [estimate]         behind the outputs, until the call returns
  persistent aten.mm.default handle = EXPR [measured]  from the first call on, once for each name

EXPR is integer arithmetic as in Python, with Max, Min, CeilDiv, Pow2Floor, Where(condition, a, b), And,
Or, Not. Symbols are constants and, by the schema's argument names, what a call is given: self.bytes,
mat2.size.1, self.contiguous, out.0.numel, causal. 0 is nothing. Numbers are whole; what can never have
a value, such as x // 0, is refused. The word in brackets says what a line rests on. ir/device/README.md
lists all symbols, and where each built-in line was read.

Built in: )";

constexpr std::string_view kMeasurements =
    R"(What calls take is told by a device profile, --device: kernels by a roofline of operations, bytes and the
shortest kernel, which is a lower bound; collectives by formulas of group and size. A measurement tells
what they took when they were run. --measurement FILE takes the seconds of

  the node with the same uid, operator and tensors in a graph of the same name;
  else the mean of calls of the same operator with the same tensors: dtypes, sizes, strides;
  for a collective of another size, those of its kind on groups of that shape, scaled;
  else what --device tells.

Reports say for how many calls each holds. FILE is schemas/profile.proto, as protobuf or JSON:

  {"version": 1, "device": "NVIDIA H100 80GB HBM3", "software": [{"name": "torch", "version": "2.15.0"}],
   "method": "cuda events", "runs": 5, "graphs": [{"graph": "main", "nodes": [
     {"uid": 7, "target": "aten.mm.default", "seconds": 1.3e-05,
      "types": "bf16[8,16], bf16[16,4]:1,16 -> bf16[8,4]"}]}]}

`fxopt run IN --write-measurement times.json` runs a step and writes it. So does, in Python with PyTorch's kernels,
fxopt.measure(graph_module, *inputs, file="times.json").
)";

constexpr std::string_view kDependences =
    R"(A schedule keeps what a graph computes, hands to the caller and issues on process groups when every node
comes after all that it must follow. `fxopt show IN --dependences` lists these for each node, with --node
for one, and how far the node may move while all others stay.

  value       it reads what the other makes
  storage     one of the two writes memory that the other reads or writes. A wait counts as a write of what
              its collective has made, and as a read of what the collective was given
  metadata    one of the two changes sizes, strides or storage of a tensor that the other is given
  random      both draw from generators, and the place of the draw in a slot is not recorded
  collective  both are issued on one process group: ranks that issue them in another order hang
  effect      one of the two is an operator that nobody described, or a barrier, and the other draws,
              writes, communicates, waits or asserts
  mode        one of the two changes the gradient mode or autocast
  event       one of the two records an event or waits for one, on one stream
  control     a control dependency (see `fxopt help control-deps`)

Placeholders come first, in their order, and the output last. Of dependences that follow from others, some
are left out. With --json every node has "follows" and "followed_by".
)";

constexpr std::string_view kRun =
    R"(fxopt run executes a training step on the CPU or on a GPU, without Python: forward, loss and backward of one
file, or several files that are one step.

  fxopt run step.pb --fill random                              does it run, is it finite, how long, how much memory
  fxopt run step.pb --state model.safetensors --inputs batch.safetensors --output out.safetensors
  fxopt run after.pb --fill random --expect out.safetensors --tolerance bitwise

Results have the same bits for any number of threads and any instruction set. Passes that are proved exact keep them, too.
Random calls draw by the node that was first recorded, not by the order in which they run, so that recomputation and cuts draw
the same; --seed chooses other numbers, --draws takes masks from a file that --save-draws or another framework wrote. Inputs
are looked up by the model's names of parameters, or by the names of placeholders; --fill makes up those that are missing,
ids below the size of the table that they index.

A step that adds gradients of several runs of a graph is refused: no step of the plan adds them.

--expect compares outputs, and values of nodes that the file has (--save NODE writes some). --tolerance auto runs the step in
float64, too, and judges by the distance of both from that. Where something differs, the steps are listed that one mistake could
be in, and the first node that is far from itself in float64 is named: a kernel that is wrong in one type.

--dry-run runs nothing and lists the operators that have no kernel, all at once. --debug memory puts guards around every
storage. --memory allocator takes storages from PyTorch's caching allocator (--alloc-conf sets it), and --memory blocks from the
system; both count bytes as they are taken, beside the predicted peak. A device cuda:0 in the file runs on the CPU.

--device cuda runs the step on a GPU, with the CPU's bits, by the plugin libfxopt_cuda.so, which is built where nvcc is found
and needs a driver for CUDA 13. `fxopt doctor` says what is there; `fxopt doctor --device cuda` exits with 9 where a run
cannot use a GPU. All memory is taken before the first run. --streams N spreads steps that are independent over N
streams. Flags that a GPU cannot honour are refused: --threads, --isa, --debug memory, --memory blocks, --streams with
--memory allocator.

Times of a GPU are by its events; the CPU's time to launch is a second figure. --per-node runs the step once more for each
of --repeat, one node after the other, and prints modules, operators and nodes by time (--top N: lines of each table).
--profile h100 adds what a profile predicts, and on a GPU names nodes that are faster than that device can be.
--write-measurement writes what each node took, for --measurement of mem and diff.
)";

constexpr std::string_view kSummary =
    R"(`fxopt show IN --summary` tells what a graph is made of, totals first, the biggest of each list first.
--top N says how many rows; the others are summed up in a line. --json has the same figures and all
rows. --node, --depth, --phase, --module and --graph, alone or together, look at a part.

  made        bytes of storages by the nodes that make them; views make none, a wait hands on its
              collective's. A storage counts once, wherever it is read
  inputs      by role, as the file says, else derived from the graph. Tensors that are one view of one
              storage (tied weights) count once; parts of a tensor subclass are a rank's shards
  phases      as passes see them: marked, else derived
  modules     by module path, each row with all below it. Numbered modules that hold the same nodes (by
              target, phase and type) and parameters are one row, 0..31. As deep as fits, or
              --module-depth N
  calls       by kind of work and by op
  collectives by group and op. In: bytes of the tensors given. Moved: bytes one of n ranks sends when
              they go around a ring: all-gather (n-1) in, reduce-scatter and all-to-all (n-1)/n in,
              all-reduce 2 (n-1)/n in; unknown for other ops and for groups the file does not list
  opaque      what nobody describes, and why. Passes assume the worst of these
  ideal peak  of `fxopt mem`, see `fxopt help memory`

A size that depends on a symbol without a value is unknown, never zero, and sums with one begin with
"at least". A size that follows from the hint of a symbol is marked "by hint".
)";

constexpr std::string_view kVerdicts =
    R"(Every tag, and every mark of a first partition (`fxopt help marks`), ends a pipeline with one verdict.
`fxopt tags FILE` lists them with reasons. It judges a whole step: tags in forward depend on what backward
reads. Pass separate forward and backward files with --step.

  honoured     the tag was carried out: MUST_SAVE on a value that backward reads, or PREFER_RECOMPUTE on
               %mm when backward reads %mm_recomputed; for a mark: the value is saved, and backward reads it
  moot         backward does not read the value: PREFER_RECOMPUTE on %t = t(%w), which only forward reads; or
               there is no backward
  implied      there is nothing to do: a view of an input or of a saved value, which stays in memory
               anyway, or a node that a pass replaced (cse)
  overridden   backward reads the value, and a rule decided against the tag: PREFER_RECOMPUTE on a value
               that backward writes in place is saved. `fxopt help tag-rules` lists the rules
  dropped      a pass erased the node, and nothing replaced it; a marked value that the graph lacks
  conflicting  tagged for recompute, but running it again would give something else (a random op without
               recorded numbers, an operator that fxopt does not know); remat refuses that

`fxopt tags` has two more words:

  ignored      tagged for recompute, and backward reads the original: no pass carried it out
  not judged   no pass has judged the tag or mark; remat and partition do. `fxopt tags` says what they would
               do, `fxopt opt` only what the passes of its pipeline did

--strict-tags exits with 4 when
  - a tag is dropped or conflicting
  - a MUST_RECOMPUTE is overridden
  - a step has recompute tags and no backward
  - a mark is dropped, or overridden by anything but a recompute tag
  - with `fxopt tags`: a tag is ignored; with `fxopt opt`: no pass has judged a recompute tag
Tags written by sac or fsdp-gathers never fail it. `tags --json` names the pass in `written_by`.
)";

constexpr std::string_view kMarks =
    R"(A mark is the key ap_must_save in the metadata `custom` of a node. It records that a first partition
saved the value, so that a second compilation of the same step saves the same values.

  ap_must_save                   any value but False and None marks the node
  ap_must_save_getitem_indices   for a call with several results: the indices of the saved ones
  ap_must_save_as                the name of the value in the first partition
  ap_must_save_of                the number of marked values in the graph
  ap_must_save_also              the names of marked values that passes merged into this one

The first two are autoparallel's, and suffice. Marks on backward nodes are ignored. PyTorch copies `custom` to
the nodes of a second trace if the graph runs in a torch.fx.Interpreter under
torch.fx.traceback.preserve_node_meta(). It copies tags, too, but not which policy wrote them: in the second
graph they count as the author's.

Compile twice:

  fxopt opt joint.pb -o first.pb --passes 'partition{mode=min-cut,mark-saved=true}'
  ... run both graphs of first.pb under PyTorch, trace a step of them, fxopt.save(joint, "again.pb") ...
  fxopt tags again.pb                        # how many marks arrived, and what would become of each
  fxopt opt again.pb -o second.pb --passes 'canonicalize,cse,partition{mode=save-all}'
  fxopt tags second.pb --strict-tags         # the verdict of each mark; exit code 4 when one was lost

Who wins, on a marked value:

  MUST_RECOMPUTE of the author        the tag
  PREFER_RECOMPUTE                    the tag; with partition{mode=save-all,prefer-recompute=loses} the mark
  MUST_RECOMPUTE of sac, fsdp-gathers the mark
  a save tag                          both ask for the same
  PyTorch's partitioners, by compat=torch: they ignore marks, with a warning

How each pass treats a mark:

  sac, fsdp-gathers        do not tag a marked value, and report it; strength=prefer,marked=override tags it
                           like any other value
  remat                    saves a marked value unless a tag wins; recomputed copies carry no mark
  partition                default, min-cut: a marked value that backward reads is saved
                           save-all: the marked values are saved, and the others recomputed,
                           except the bases of marked views
                           save-all, min-cut: equal gathers of a parameter are merged in each half; a warning
                           counts repeated gathers that cannot be merged, by reason
  canonicalize             moves the mark of a removed view to its base; keeps a view whose removal would
                           lose a saved value
  cse, dedup-unshards      give the merged node the marks of all its originals
  cse, canonicalize        do not merge a marked value that backward does not read with an equal unmarked one
                           that it reads: save-all saves neither (remarks saves-differ, saved-view)
  bucket                   moves a member's mark to its slice of the bucket; marked and unmarked gathers
                           never share a bucket. In front of save-all: a backward bucket is merged with a
                           saved forward one only if both have the same members in the same order, else the
                           parameters are gathered again (warning gathers-apart); with form=out the gathered
                           buffer is saved (remark mutated)
  fuse-gathers, alias-round-trips
                           keep a gather if removing it would remove a marked value
  dce                      records the mark of an erased value as moot
  infer-phase, raise-getitems, compute-cap, join
                           keep marks as they are

After each pass fxopt checks that every mark and tag is on a node, or recorded with an erased node.
`fxopt help tag-rules` has all rules, `fxopt help verdicts` the verdicts.
)";

constexpr std::string_view kPhases =
    R"(Each node belongs to a phase: forward, loss, backward or optimizer. It is decided once, from the
markers of the tracer. In a joint graph whatever depends on a tangent is backward too, and a forward
mark on such a node is an error. Where a graph has no markers, every command and pass infers them; the
pass infer-phase writes what was inferred into the graph.
)";

std::string pipeline_topic() {
  return "A pipeline is a list of passes, run in order; options stand in braces:\n\n"
         "  fxopt opt IN -o OUT --passes 'cse,sac{policy=per-op},remat,dce'\n\n"
         "Put it between single quotes, or the shell takes the braces. Values with a comma, a brace or a\n"
         "space stand in double quotes: sac{exclude=\"lm_head,loss\"}. `fxopt passes` lists the passes,\n"
         "`fxopt passes NAME` one with its options. A pass in a place where it cannot work is an error before\n"
         "anything is read. A pipeline gives the same bytes as its passes run one after the other.\n\n"
         "default: " +
         std::string(default_pipeline_text()) + "\n";
}

std::string tag_rules_topic() {
  std::string text =
      "A tag says whether a value is saved for backward or recomputed: MUST_SAVE, PREFER_SAVE,\n"
      "MUST_RECOMPUTE, PREFER_RECOMPUTE, MUST_OFFLOAD, PREFER_OFFLOAD. A mark (ap_must_save) says that a first\n"
      "partition saved the value. remat and partition (except compat=torch) apply the first rule that matches.\n"
      "The rules from unrepeatable on block or qualify a recompute, or describe merges. `tags --json` names the\n"
      "rule of each tag:\n\n";
  for (const TagRuleText& row : tag_rules()) {
    text += "  " + std::string(name_of(row.rule)) + "\n      " + std::string(row.situation) + ":\n      " +
            std::string(row.result) + "\n";
  }
  return text +
         "\ncompat=torch ignores the rule inherited, marks, and in-place writes. `fxopt tags FILE` lists the verdict\n"
         "of each tag and mark, `fxopt help verdicts` defines the verdicts.\n";
}

std::string devices_text() {
  const std::vector<std::string_view> names = builtin_profiles();
  return std::string(kDevices) + join(std::vector<std::string>(names.begin(), names.end()), ", ") + ".\n";
}

}  // namespace

const std::vector<Topic>& topics() {
  static const std::vector<Topic> rows = {
      {"control-deps", "order without data, and PyTorch's op for it", std::string(kControlDeps)},
      {"dependences", "which nodes must stay before which", std::string(kDependences)},
      {"devices", "what --device takes", devices_text()},
      {"exit-codes", "what the exit codes mean", std::string(kExitCodes)},
      {"formats", "the forms of graph files", std::string(kFormats)},
      {"json", "what --json prints", std::string(kJson)},
      {"marks", "what ap_must_save is, and what each pass does with it", std::string(kMarks)},
      {"measurements", "what --measurement takes, and what calls cost without", std::string(kMeasurements)},
      {"memory", "what the peaks count", std::string(kMemory)},
      {"phases", "forward, loss, backward, optimizer", std::string(kPhases)},
      {"pipeline", "how passes are written one after the other", pipeline_topic()},
      {"proofs", "what is proved after each pass, and between two files", std::string(kProofs)},
      {"running", "how a step is executed, and compared", std::string(kRun)},
      {"steps", "several graphs as one step", std::string(kSteps)},
      {"summary", "what show --summary counts", std::string(kSummary)},
      {"tag-rules", "save and recompute tags, and which rule decides", tag_rules_topic()},
      {"verdicts", "what became of a tag, in one word", std::string(kVerdicts)},
  };
  return rows;
}

}  // namespace fxopt
