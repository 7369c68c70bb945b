// The words of `fxopt help CODE`: for each code what it means, its usual cause, and what to do.
#include "core/check.h"
#include "core/error.h"

namespace fxopt {
namespace {

struct Row {
  ErrorCode code;
  std::string_view title;
  std::string_view explanation;
};

// Sorted by number.
constexpr Row kRows[] = {
    {ErrorCode::kInternal, "fxopt made a mistake",
     "A condition that fxopt relies on did not hold, so it stopped before it could write a wrong graph. The input may"
     " be perfectly good. fxopt writes a reproducer (the input before the failing pass, the pipeline and the version)"
     " and prints its place. Please report it with that file; meanwhile, leave out the pass the message names."},
    {ErrorCode::kUsage, "the command line is not understood",
     "An argument is missing, given twice, or contradicts another one. `fxopt help COMMAND` lists what a command "
     "takes, with its defaults. Nothing was read or written."},
    {ErrorCode::kUnknownPass, "no pass has this name",
     "The pipeline names a pass that this build does not have, most often through a slip or because the name comes "
     "from another version. `fxopt passes` lists all of them. Names are lower case, with hyphens between words."},
    {ErrorCode::kUnknownOption, "the pass or command has no such option",
     "The name before '=' is not an option here. `fxopt passes NAME` lists the options of a pass with their types, "
     "ranges and defaults, `fxopt help COMMAND` those of a command."},
    {ErrorCode::kBadOptionValue, "an option's value is not of its type or not in its range",
     "The option exists, but the value is no number where one is needed, lies outside of the range, or is none of the"
     " listed words. Sizes accept a unit such as 25MiB. The message shows what is accepted."},
    {ErrorCode::kBadPipeline, "the text of the pipeline is malformed",
     "A pipeline is a list of passes separated by commas, each with its options in braces: 'cse,sac{policy=per-"
     "op},remat,dce'. Usual causes are a brace that is not closed, two commas in a row, and a shell that took the "
     "braces for itself. Put the pipeline between single quotes."},
    {ErrorCode::kPassOrder, "a pass stands where it cannot work",
     "Some passes need another one before them, or must stand before another one: checkpointing before the planning "
     "of captures, for example. The message names both. `fxopt passes NAME` shows what a pass requires; move it, or "
     "add the pass it needs."},
    {ErrorCode::kUnknownFormat, "the form of a file cannot be told",
     "The form of an output follows from the extension: .pb for protobuf, .fxg for text, .json for JSON, each with "
     ".zst after it when compressed. The path has none of them, or --format names another form. Rename the output, or "
     "say its form with --format. Nothing was read or written."},
    {ErrorCode::kUnknownTopic, "there is no such help topic",
     "`fxopt help` alone lists the topics: the commands, the concepts, and the error codes. Codes can be written as "
     "FX0306 or 306."},
    {ErrorCode::kUnknownNode, "no node has this name",
     "The command was asked about a node, graph or value that the file does not contain. Names are those that `fxopt "
     "show` prints, with or without the leading '%' or '@'. Passes may have erased or renamed it: look at the file "
     "this command "
     "reads, not at one from before."},
    {ErrorCode::kAllocatorSyntax, "the allocator settings are malformed",
     "The text of PYTORCH_ALLOC_CONF is a list of key:value with commas between them, and a value may be a list in "
     "square brackets: 'max_split_size_mb:128,roundup_power2_divisions:[256:1,>:4]'. Usual causes are '=' in place of "
     "':', and a bracket that is not closed."},
    {ErrorCode::kAllocatorKey, "the allocator has no such setting",
     "The text of PYTORCH_ALLOC_CONF names a setting that the framework's allocator does not have, so the framework "
     "would refuse it as well. Usual causes are a slip, a unit that is missing at the end (_mb), and a setting of a "
     "later version."},
    {ErrorCode::kAllocatorValue, "an allocator setting has a value that is not legal",
     "The setting exists, but the framework's allocator refuses this value: switches are exactly True or False, sizes "
     "are whole MiB with a lower bound, divisions are powers of two, shares lie between 0 and 1. The message shows "
     "what is accepted."},
    {ErrorCode::kUnknownDevice, "there is no such device profile",
     "--device takes the names of built-in profiles, which `fxopt help devices` lists, or paths of profile files (with "
     "a '/' in them). Several are given with commas between them; what stands in a later one replaces what stands in "
     "those before."},
    {ErrorCode::kNotAFile, "the file is not a graph of fxopt",
     "The first bytes are not those that each binary file of fxopt begins with. Usual causes are a wrong path, a "
     "pickle or an exported program of the framework given in place of a converted one, and a file that was damaged. "
     "Inputs are recognised by their content, whatever the extension: check what it is."},
    {ErrorCode::kVersion, "the file follows a schema that this build does not read",
     "The file was written by a newer fxopt or exporter whose schema has changed in a way an older reader cannot "
     "skip, or by one from before the first released schema. Update fxopt, or write the file again with the exporter "
     "that belongs to this version."},
    {ErrorCode::kHashMismatch, "the bytes of the file were damaged",
     "The module inside the file does not have the hash that was stored with it, so some bytes changed after it was "
     "written. Usual causes are an interrupted copy, a transfer as text, and an edit by hand. Copy or write it again;"
     " to edit a graph, convert it to .fxg or .json first."},
    {ErrorCode::kMalformed, "the file does not parse",
     "The bytes are not valid protobuf or JSON for the schema: a field has the wrong type, or the structure is "
     "broken. The message names the place. A graph made by another program should follow schemas/fxgraph.proto, a "
     ".safetensors file its public format."},
    {ErrorCode::kTruncated, "the file ends too early",
     "The file stops before the end of what it announces. Usual causes are a full disk or an interrupted program when"
     " it was written, and an interrupted copy. Write or copy it again."},
    {ErrorCode::kSyntax, "the text does not follow the grammar",
     "The text form was read up to the caret and something else was expected there. The usual causes are a missing "
     "comma, bracket or quotation mark just before. The grammar stands in the documentation of the text form, and "
     "`fxopt show` prints correct examples."},
    {ErrorCode::kBadReference, "something is referred to that does not exist",
     "An index or a name points at a node, string, symbol, storage, graph or group that the file does not define, or "
     "that is defined only further down. In the text form this is mostly a slip in a name or a line that was removed "
     "while others still use it. Define it before its first use."},
    {ErrorCode::kDuplicateName, "a name is defined twice",
     "Nodes of one graph, graphs, groups, symbols and constants of one module, and tensors of one .safetensors file, "
     "each need a name or number of their own, or a reference would have two meanings. Rename one of them."},
    {ErrorCode::kLimit, "a count, a depth or a size is beyond what is read",
     "fxopt bounds what it accepts, so that a damaged or hostile file cannot exhaust the machine. Real graphs stay "
     "far below the bounds: nesting in the tens, dimensions in the tens, nodes in the millions. The message names the"
     " bound; if an honest graph exceeds it, please report it."},
    {ErrorCode::kBadExpression, "a symbolic integer does not parse",
     "Expressions are integers and symbols joined by + - * / // % ** and comparisons, with brackets and functions "
     "such as Max(s0, 1). The column counts from the beginning of the expression. Symbols whose name is not a plain "
     "word stand in double quotes."},
    {ErrorCode::kBadValue, "a field has a value that is not legal",
     "The field has the right type but a value without meaning: a negative size, an unknown data type, a phase that "
     "does not exist. The message names the node and the field. Correct the program that wrote the file, or the field"
     " in the text form."},
    {ErrorCode::kCountMismatch, "two counts that must agree differ",
     "The file states how many items there are, or two lists belong together item by item, and the numbers differ: "
     "sizes and strides, for example, or the counts of the header. The file was cut, edited, or written by a faulty "
     "exporter. Write it again."},
    {ErrorCode::kBadCompression, "the compressed data is damaged",
     "The file begins as zstd data but does not decompress: it was cut short, changed, or needs a larger window than "
     "is allowed here. Check it with `zstd -t FILE`. A file compressed with --long beyond 27 must be compressed again"
     " without it."},
    {ErrorCode::kBadProfile, "the device profile is malformed",
     "A device profile is text with one statement a line: what a kernel takes besides its outputs, what a device has. "
     "`fxopt help devices` shows the grammar. The message names file, line and column. Nothing of the file was used."},
    {ErrorCode::kBadBaseline, "the baseline cannot be compared with",
     "The file given with --baseline is not a memory report as `fxopt mem --update-baseline` writes it, belongs to "
     "another file or graph, or was made with other options (device, allocator settings, symbols, lifetimes), so that "
     "a difference would say nothing about the graph. Write it anew with --update-baseline, on the version to compare "
     "with."},
    {ErrorCode::kBadStep, "these graphs do not make one step",
     "A step is a list of runs of graphs, with what each input is bound to. It could not be made: the files disagree "
     "about something they both name (a symbol, a group, a constant), nothing says in which order the graphs run, or "
     "an "
     "input is bound to an output of another type. The message names what does not fit. Give files of one trace, or "
     "write `invocations` into the file (`fxopt help steps`)."},
    {ErrorCode::kBadMeasurement, "the measurement cannot be used",
     "The file given with --measurement is not one of schemas/profile.proto, as protobuf or as JSON: seconds of calls "
     "that "
     "were run. `fxopt help measurements` says how one is made. Nothing of the file was used."},
    {ErrorCode::kBadInput, "an input is not what the step takes",
     "fxopt run checks every input against the file before anything runs: its name, dtype, number of dimensions, "
     "sizes, and what "
     "symbols and guards say of them. The message has both sides. Usual causes are a batch of another size than was "
     "traced, "
     "ids as int32 where the step takes int64, and a file of another model."},
    {ErrorCode::kVerifyStructure, "the structure of the graph is invalid",
     "A graph must have one output node at its end, unique names, arguments inside their tables, and use lists that "
     "match the arguments. The message names the node that breaks this. If an input file shows it, the exporter is at"
     " fault; if it appears after a pass, that pass is, and the reproducer should be reported."},
    {ErrorCode::kVerifyOrder, "a node is used before it is defined",
     "The order of the nodes is the order of execution, so each input must stand before its user, for control edges "
     "too. Usual causes are lines moved in the text form and an exporter that does not keep the order. Move the "
     "definition up, or the user down."},
    {ErrorCode::kVerifyValue, "what a node produces is described wrongly",
     "A value contradicts itself or the node: as many strides as sizes are needed, a getitem needs an index inside "
     "its tuple, an output cannot have a value nobody made. Correct the description, or let the exporter take it from"
     " the framework's metadata."},
    {ErrorCode::kVerifyAlias, "storages or aliases contradict each other",
     "A tensor reaches beyond its storage, a view does not share the storage of its base, or a storage has two sizes."
     " Memory and in-place writes cannot be judged on such a graph. Correct the storage ids, or leave them out: they "
     "are then derived from the ops."},
    {ErrorCode::kVerifyCollective, "a collective is invalid",
     "A collective names a group that is not defined, has a size that does not divide by the group, or has a result "
     "that is not waited for exactly where it must be. Ranks could hang or read unfinished data. Check the groups of "
     "the module and the wait nodes."},
    {ErrorCode::kVerifyPhase, "phases contradict the data flow",
     "A node that is marked forward depends on a gradient, a tangent is marked forward, or a phase, tag or verdict is "
     "none that exists. A node marked backward that forward's outputs depend on is no error: it counts as forward. "
     "Usual causes "
     "are markers placed by hand. Correct the markers, or remove them and run `infer-phase`."},
    {ErrorCode::kVerifyReference, "a record names something that is not there",
     "A calling convention, an invocation, an origin or another record beside the nodes refers to a graph, node, "
     "symbol or group that does not exist, or to one of the wrong kind. The message names the record. Remove it, or "
     "correct the name."},
    {ErrorCode::kTagConflict, "a tag was not carried out, and --strict-tags is given",
     "With --strict-tags no tag may be dropped by a pass or conflict, no MUST_RECOMPUTE may be overridden, some pass "
     "must judge each recompute tag, and what an option selects must be there. The message names the rule that decided "
     "where there is one; `fxopt help tag-rules` lists the rules and `fxopt tags` all tags. Change the tags, the "
     "policy or the pipeline, or leave the flag out."},
    {ErrorCode::kTagUnrepeatable, "a node tagged for recompute cannot be repeated",
     "The node has an effect, or draws random numbers without a recorded slot, so a second run would not give the "
     "same value. Tag its output to be saved, or record the random state when the graph is traced."},
    {ErrorCode::kPhaseConflict, "a node is marked forward but depends on backward",
     "Whatever depends on a tangent belongs to backward, and this node is marked as forward all the same. The message"
     " shows the node and the tangent. The markers come from the tracer: mark the node as backward, or remove its "
     "marker."},
    {ErrorCode::kNotEquivalent, "the graph computes something else than the one before",
     "Both graphs were run on names instead of numbers, and they do not end alike: an output, what is written into an "
     "input or attribute, the tensors that share memory, the random draws, the collectives or another effect. The "
     "message names the first difference and the first call that the graph before does not have. After a pass it is a "
     "mistake of the pass: nothing is written but a reproducer. Of `fxopt verify --against`: a rewrite that is right "
     "by "
     "a law of algebra, as a + b for b + a, is a difference, too."},
    {ErrorCode::kNotProved, "a fact is missing that would prove the graphs alike",
     "The graph has a view that the graph before does not have, and what it shows cannot be calculated from its "
     "arguments: its operator is unknown to the calculator, or its sizes depend on symbols in a way that no polynomial "
     "shows. Nothing speaks against the graph, and nothing proves it."},
    {ErrorCode::kOutputsDiffer, "outputs differ from what was expected",
     "fxopt run --expect compared each output with the tensor of its name. The report lists the outputs with the "
     "number of elements "
     "beyond the tolerance, the worst element with both values, and the nodes that only differing outputs depend on: "
     "the "
     "mistake is most often in one of these."},
    {ErrorCode::kBudgetExceeded, "the peak is above the budget",
     "The graph was read and measured, and its peak memory exceeds the limit of --budget, or memory runs out where "
     "--must-fit is given. This is an answer, not a failure. The report lists what is live at the peak."},
    {ErrorCode::kGrowthExceeded, "a peak has grown beyond the limit",
     "The graph was read and measured, and one of its peaks is larger than the baseline's by more than --max-growth or "
     "--max-ratio allow. This is an answer, not a failure. The message names the metric, both figures, and the "
     "storages that grew or are new at the peak. When the growth is meant, write the baseline anew with "
     "--update-baseline."},
    {ErrorCode::kRanksDiverge, "ranks do not fit together",
     "Two ranks issue collectives that do not match: others, in another order, of other types or sizes, on a group "
     "that "
     "they know differently, or in orders that wait for each other in a circle. A job that runs these files hangs, or "
     "gives wrong numbers without an error. The message names the first place on each group, with both nodes."},
    {ErrorCode::kUnknownSize, "a size is needed that is not known",
     "The request needs a number of bytes, and a symbol has no value, or an opaque op does not describe its result. "
     "An unknown size is never counted as zero. Give the symbols values on the command line, or add the description "
     "to the file."},
    {ErrorCode::kUnsupportedOp, "an op cannot be handled here",
     "The request needs to know what the op does (its kernel, its flops or its rule) and neither the built-in table "
     "nor the file describes it. The message lists all such ops at once. Add their schemas to the file where that is "
     "enough, or leave the nodes out of the request."},
    {ErrorCode::kUnsupportedGraph, "this kind of graph cannot be handled here",
     "The graph is valid, but the request has no meaning for its kind or for something it contains: several graphs "
     "where one is needed, for example, or subgraphs where a flat graph is. The message says what stands in the way "
     "and, where one exists, which pass or option removes it."},
    {ErrorCode::kOutOfMemory, "there is not enough memory to run the step",
     "The message has the bytes that were asked for and the node that needs them. `fxopt mem` tells where the peak is, "
     "and `fxopt help "
     "memory` what it counts."},
    {ErrorCode::kRunFailed, "a step failed while it ran",
     "The message names the node, the element and the value: most often an index beyond its dimension, such as a token "
     "id that "
     "the embedding has no row for. Nothing was written."},
    {ErrorCode::kDeviceFailed, "a device cannot be used",
     "The plugin of the device, its driver or the device itself is not there, is of another version, or failed; the "
     "message says which and how. `fxopt doctor` lists what was found, what is missing and what to do. Nothing was "
     "written."},
    {ErrorCode::kFileOpen, "the file cannot be opened",
     "The system refused to open the file; the message gives its reason. Usual causes are a slip in the path, a "
     "relative path from another folder, and missing permissions."},
    {ErrorCode::kFileRead, "the file cannot be read",
     "The file was opened, but reading failed; the message gives the system's reason. Usual causes are a folder given"
     " in place of a file, a network file system that went away, and a failing disk."},
    {ErrorCode::kFileWrite, "the file cannot be written",
     "The output could not be made; the message gives the system's reason. Outputs are written to a new file in the "
     "same folder that replaces the old one at the end, so the folder must be writable, and an old file is as it was."
     " Usual causes are a folder that does not exist, missing permissions, and a full disk."},
    {ErrorCode::kFileTooLarge, "the file is larger than what is read",
     "The file, or what it decompresses to, exceeds the limit or the memory of this machine. Usual causes are a wrong"
     " file, such as a checkpoint in place of a graph, and large constants inside the graph. Constants above 1 KiB "
     "belong into a .safetensors file beside it."},
};

ExitCode exit_of_family(ErrorCode code) {
  const int family = static_cast<int>(code) / 100;
  FXOPT_CHECK(family >= 1 && family <= 10, "error code outside of the families");
  return static_cast<ExitCode>(family);
}

}  // namespace

const std::vector<ErrorInfo>& error_table() {
  static const std::vector<ErrorInfo> table = [] {
    std::vector<ErrorInfo> rows;
    for (const Row& row : kRows) rows.push_back({row.code, exit_of_family(row.code), row.title, row.explanation});
    return rows;
  }();
  return table;
}

}  // namespace fxopt
