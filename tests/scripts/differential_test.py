"""scripts/peers/differential.py runs the passes on some random programs, and finds planted
mistakes. Skipped without torch or the fxopt program."""

from __future__ import annotations

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

from setting import InFolder, imports_torch, need_program

with imports_torch():
    import differential
    import edits
    import torch
    from differential_parts import campaign, collectives, families, files, messages, observe, pipelines, soup, tables
    from differential_parts.programs import Program, Unusable, leaves_of
    from edit_parts.pairs import PAIR_EDITS, UNCHANGED
    from fxopt.tool import FxoptError, find_fxopt
    from torch.fx.experimental.proxy_tensor import make_fx
need_program()

aten = torch.ops.aten
SEEDS = 80

CSE = """graph @main {
  %x: f32[2, 4] = placeholder()
  %a: f32[4, 2] = aten.view.default(%x, [4, 2])
  %b: f32[4, 2] = aten.view.default(%x, [4, 2])
  %t: f32[2, 4](1, 2) = aten.t_.default(%a)
  %c: f32[2] = aten.sum.dim_IntList(%b, [0])
  return (%t, %c)
}
"""


def setUpModule():
    """Restores the process settings that the tester changes, because other tests run in this
    process."""
    state = torch.get_rng_state(), torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    unittest.addModuleCleanup(torch.set_rng_state, state[0])
    unittest.addModuleCleanup(torch.set_num_threads, state[1])
    unittest.addModuleCleanup(torch.use_deterministic_algorithms, state[2])
    if not torch.distributed.is_initialized():
        unittest.addModuleCleanup(leave_group)
    campaign.prepare_process()


def leave_group():
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


class WhatIsCompared(unittest.TestCase):
    """Each test changes one thing that a caller can see."""

    def differs(self, before, after, words, inputs=lambda: [torch.arange(4.0)], **options):
        first, second = (observe.execute(function, inputs(), {}, **options) for function in (before, after))
        self.assertEqual(observe.differences(first, first), [])
        lines = observe.differences(first, second, same_collectives=True)
        self.assertTrue(any(words in line for line in lines), lines)

    def test_values_to_the_bit(self):
        self.differs(lambda x: x * 0.0, lambda x: x * -0.0, "output 0: data")

    def test_sizes_strides_and_dtypes(self):
        self.differs(lambda x: x.view(2, 2).clone(), lambda x: x.view(4, 1).clone(), "output 0: sizes")
        self.differs(lambda x: x.view(2, 2).clone(), lambda x: x.view(2, 2).t().clone(), "output 0: strides")
        self.differs(lambda x: x.clone(), lambda x: x.double(), "output 0: dtype")

    def test_inputs_that_were_written(self):
        self.differs(lambda x: x.add_(1).sum(), lambda x: (x + 1).sum(), "input 0: data")
        self.differs(lambda x: x.view(2, 2).unsqueeze_(0).sum(), lambda x: x.unsqueeze_(0).sum(), "input 0: sizes")

    def test_what_shares_memory_and_what_is_one_object(self):
        self.differs(lambda x: (x.view(2, 2),), lambda x: (x.view(2, 2).clone(),), "output 0")
        self.differs(lambda x: (y := x * 2, y.view(4)), lambda x: (x * 2, x * 2), "output 1 shares memory: as output 0 before, alone")
        self.differs(lambda x: (y := x * 2, y.view(4)), lambda x: (y := x * 2, y), "output 1 is the same object: alone before, as output 0")

    def test_the_state_of_the_generator_and_what_is_raised(self):
        self.differs(lambda x: (torch.rand(2), x)[1], lambda x: x, "generator")

        def refuse(x):
            raise ValueError("no")

        self.differs(lambda x: x, refuse, "raises ValueError: no")

    def test_gradients(self):
        inputs = lambda: [torch.ones(4, requires_grad=True)]  # noqa: E731
        self.differs(lambda x: x.detach() * x, lambda x: x * x, "gradient of input 0", inputs, wanted=["input 0"])
        self.differs(lambda x: x * x, lambda x: (x * x).detach(), "requires_grad", inputs, wanted=["input 0"])

    def test_what_is_printed(self):
        self.differs(lambda x: (print("a"), x)[1], lambda x: x, "printed text")

    def test_a_lost_wait_and_a_lost_collective(self):
        collectives.join_group(2)
        c10d = torch.ops._c10d_functional
        reduced = lambda x: c10d.wait_tensor(c10d.all_reduce(x, "sum", "0")) * 1.0  # noqa: E731
        self.differs(reduced, lambda x: c10d.all_reduce(x, "sum", "0") * 1.0, "output 0: data")
        self.differs(lambda x: (reduced(x), x)[1], lambda x: x, "1 collectives became 0")

    def test_an_attribute_that_nobody_reads_any_more_is_no_difference_unless_it_was_written(self):
        held = torch.ones(2)
        read = observe.execute(lambda x: held * 0 + 1, [torch.ones(2)], {"b": held})
        gone = observe.execute(lambda x: torch.ones(2), [torch.ones(2)], {})
        self.assertEqual(observe.differences(read, gone), [])
        written = observe.execute(lambda x: held.add_(1) * 0 + 1, [torch.ones(2)], {"b": held})
        self.assertEqual(observe.differences(written, gone), ["attribute b: missing"])

    def test_a_run_leaves_attributes_as_they_were(self):
        held = {"b": torch.ones(2, 3)}
        with observe.kept(held):
            held["b"].add_(1).t_()
            held["b"].set_(torch.zeros(7))
        self.assertTrue(torch.equal(held["b"], torch.ones(2, 3)))


def two_messages(x, y):
    """A stage. It sends two activations to rank 1, receives a gradient for each, and sends one
    buffer twice to rank 2."""
    buffer, first, second = y.clone(), x * 2.0, x + 1.0
    pending = messages.begin_send(first, 1), messages.begin_send(second, 1)
    for sent in pending:
        messages.wait(sent)
    came = [messages.receive(torch.empty(x.shape), 1) for _ in range(2)]
    messages.send(buffer, 2)
    buffer.add_(1.0)
    messages.send(buffer, 2)
    return came[0] - came[1] * 2.0, buffer * 3.0


class Messages(unittest.TestCase):
    """Edits of a graph that sends and receives: visible and invisible ones for the other rank."""

    def setUp(self):
        collectives.join_group(2)
        inputs = lambda: [torch.arange(4.0), torch.ones(3)]  # noqa: E731
        self.graph_module = make_fx(two_messages, tracing_mode="fake")(*inputs())
        self.program = Program(self.graph_module, inputs)
        self.before = campaign.run_graph(self.program, self.graph_module)
        self.assertEqual(self.lines(), [])
        named = lambda name: self.graph_module.graph.find_nodes(op="call_function", target=name)  # noqa: E731
        self.sends, self.receives = named(torch.ops._c10d_functional.isend.default), named(torch.ops._c10d_functional.irecv.default)
        self.waits = {node.args[0]: node for node in named(torch.ops._c10d_functional.wait_tensor.default)}
        self.assertEqual((len(self.sends), len(self.receives), len(self.waits)), (4, 2, 6))

    def lines(self, passes="remat,cse{collectives=true}"):
        """The differences after the edit. The default passes may merge and repeat collectives."""
        self.graph_module.graph.lint()
        self.graph_module.recompile()
        return campaign.differences(self.before, campaign.run_graph(self.program, self.graph_module), passes)

    def sees(self, words, passes="remat,cse{collectives=true}"):
        lines = self.lines(passes)
        self.assertTrue(any(words in line for line in lines), lines)
        self.assertIn(observe.kind_of(lines[0]), ("messages", "values", "effects"))

    def erase(self, *nodes):
        for node in nodes:
            self.graph_module.graph.erase_node(node)

    def test_a_dropped_send(self):
        self.erase(self.waits[self.sends[1]], self.sends[1])
        self.sees("group 0 rank 1: 4 messages became 3")

    def test_a_dropped_receive(self):
        wait = self.waits[self.receives[1]]
        wait.replace_all_uses_with(self.waits[self.receives[0]])
        self.erase(wait, self.receives[1])
        self.sees("group 0 rank 1: 4 messages became 3")

    def test_a_repeated_send(self):
        with self.graph_module.graph.inserting_after(self.waits[self.sends[1]]):
            self.graph_module.graph.node_copy(self.sends[0])
        self.sees("group 0 rank 1: 4 messages became 5")

    def test_equal_sends_that_are_merged(self):
        self.sends[1].args = self.sends[0].args
        self.graph_module.recompile()
        self.before = campaign.run_graph(self.program, self.graph_module)
        self.sends[1].replace_all_uses_with(self.sends[0])
        self.erase(self.sends[1])
        self.sees("group 0 rank 1: 4 messages became 3")

    def test_sends_in_another_order(self):
        self.sends[1].append(self.sends[0])
        self.sees("group 0 rank 1: message 1, isend")

    def test_a_send_that_is_delayed_past_a_receive(self):
        wait = self.waits[self.sends[1]]
        self.waits[self.receives[0]].append(self.sends[1])
        self.sends[1].append(wait)
        self.sees("message 2, isend of 4 float32, tag 0, content")

    def test_receives_in_another_order(self):
        first, second = self.receives
        first.prepend(second.args[0])
        first.prepend(second)
        self.sees("output 0: data")

    def test_another_value_rank_or_tag(self):
        known = self.sends[0].args
        self.sends[0].prepend(self.sends[1].args[0])
        for args, words in (
            ((self.sends[1].args[0], *known[1:]), "message 1, isend"),
            ((known[0], 2, *known[2:]), "group 0 rank 1: 4 messages became 3"),
            ((*known[:2], 5, known[3]), "became isend of 4 float32, tag 5"),
        ):
            self.sends[0].args = args
            with self.subTest(words):
                self.sees(words)

    def test_a_buffer_that_is_written_while_it_is_on_its_way(self):
        (write,) = self.graph_module.graph.find_nodes(op="call_function", target=aten.add_.Tensor)
        self.sends[2].append(write)
        self.sees("changed before its wait")

    def test_a_buffer_that_is_written_before_it_is_sent(self):
        (write,) = self.graph_module.graph.find_nodes(op="call_function", target=aten.add_.Tensor)
        self.sends[2].prepend(write)
        self.sees("group 0 rank 2: message 1, isend of 3 float32")

    def test_a_send_that_nobody_waits_for(self):
        self.erase(self.waits[self.sends[0]])
        self.sees("never waited for")

    def test_what_is_received_is_there_only_after_its_wait(self):
        wait = self.waits[self.receives[0]]
        wait.replace_all_uses_with(self.receives[0])
        self.erase(wait)
        self.sees("output 0: data")

    def test_a_send_of_what_is_not_contiguous(self):
        with self.graph_module.graph.inserting_before(self.sends[1]):
            wide = self.graph_module.graph.call_function(aten.repeat_interleave.self_int, (self.sends[1].args[0], 2))
            part = self.graph_module.graph.call_function(aten.slice.Tensor, (wide, 0, 0, 8, 2))
        self.sends[1].args = (part, *self.sends[1].args[1:])
        self.sees("not contiguous")

    def test_what_no_rank_sees_is_no_difference(self):
        """Messages of different ranks are reordered, a wait for a send moves later, and a sent
        value is computed earlier."""
        for send in self.sends[:2]:
            self.receives[1].append(self.waits[send])
        self.sends[0].prepend(self.sends[1].args[0])
        self.assertEqual(self.lines(), [])
        self.graph_module.graph.find_nodes(op="placeholder")[-1].append(self.sends[2].args[0])
        self.sends[2].args[0].append(self.sends[2])
        self.sends[2].append(self.waits[self.sends[2]])
        self.assertEqual(self.lines(), [])
        self.sees("collectives became", "canonicalize")

    def test_sends_and_receives_of_one_call(self):
        def exchange(x):
            return messages.exchange(x, torch.empty(4), 1) * 2.0

        def apart(x):
            messages.send(x, 1)
            return messages.receive(torch.empty(4), 1) * 2.0

        seen = [observe.execute(function, [torch.ones(4)], {}) for function in (exchange, apart)]
        self.assertEqual(len(seen[0].messages["group 0 rank 1"]), 2)
        self.assertEqual(observe.differences(*seen), [])
        self.assertEqual(len(observe.differences(*seen, same_collectives=True)), 1)

    def test_a_program_that_writes_what_it_sends_is_none(self):
        def function(x):
            sent = messages.begin_send(x, 1)
            x.add_(1.0)
            return messages.wait(sent)

        program = Program(make_fx(function)(torch.ones(3)), lambda: [torch.ones(3)])
        with mock.patch.object(families, "make", return_value=(program, "messages")), self.assertRaisesRegex(Unusable, "on its way"):
            campaign.Subject(0, "", pathlib.Path())


class Programs(unittest.TestCase):
    def test_a_seed_gives_the_same_program_inputs_and_pipelines(self):
        known = pipelines.known_passes(find_fxopt())
        for seed, kind in ((3, "soup"), (4, "soup"), (8, "soup"), (2, "messages"), (3, "messages"), (2, "nested backward")):
            texts = []
            for _ in range(2):
                program, family = families.make(seed, kind)
                dice = pipelines.Dice(seed)
                chosen = pipelines.random_pipelines(dice, known, program.graph_module, 5, tagged=True)
                texts.append((files.listing(program.graph_module), str(program.inputs()), chosen))
            self.assertEqual(*texts)

    def test_options_whose_purpose_is_another_result_are_left_out(self):
        known = pipelines.known_passes(find_fxopt())
        graph_module = make_fx(lambda x: x + 1)(torch.ones(2))
        text = str([pipelines.random_pipelines(pipelines.Dice(seed), known, graph_module, 20, tagged=True) for seed in range(40)])
        self.assertNotIn("compat", text)
        self.assertNotIn("=remove", text)
        for item in known:
            self.assertEqual(item.name in text, item.name not in pipelines.FOR_JOINT, item.name)

    def test_every_option_is_drawn_with_values_in_and_out_of_range(self):
        known = pipelines.known_passes(find_fxopt())
        graph_module = make_fx(lambda x: x + 1)(torch.ones(2))
        for item in known:
            drawn = {pipelines._text(pipelines.Dice(seed), item, graph_module) for seed in range(400)}
            for option in item.options:
                if option["name"] == "compat" or item.name in pipelines.FOR_JOINT:
                    continue
                with self.subTest(f"{item.name}{{{option['name']}}}"):
                    self.assertTrue(any(f"{option['name']}=" in text for text in drawn))
                    for values in pipelines.NUMBERS.get(option["type"], ()):
                        self.assertTrue(any(f"{option['name']}={value}" in text for text in drawn for value in values))
        (cuts,) = [item for item in known if item.name == "partition"]
        drawn = str([pipelines._cut(pipelines.Dice(seed)) for seed in range(400)])
        for option in cuts.options:
            for choice in option["choices"] or ("true", "false"):
                if choice != option["default"] or option["name"] in ("mode", "mark-saved", "cut"):
                    self.assertIn(f"{option['name']}={choice}", drawn)

    def test_new_families_have_what_they_are_for(self):
        made = {name: [families.make(seed, name)[0] for seed in range(24)] for name in ("messages", "nested backward")}
        sent = [campaign.run_graph(program, program.graph_module).messages for program in made["messages"]]
        self.assertGreater(sum(map(bool, sent)), 20)
        for name, wanted in (
            ("messages", {"pipeline stage", "messages in a line", "joint with messages", "PyTorch's own marks", "tags"}),
            ("nested backward", {"nested: forces", "nested: inner step", "joint with nested backward", "PyTorch's own marks", "tags"}),
        ):
            self.assertLessEqual(wanted, set().union(*(program.features for program in made[name])))

    def test_joint_graphs_are_cut_in_every_mode(self):
        known = pipelines.known_passes(find_fxopt())
        graph_module = make_fx(lambda x: x + 1)(torch.ones(2))
        drawn = [pipelines.random_pipelines(pipelines.Dice(seed), known, graph_module, 20, tagged=True, joint=True) for seed in range(40)]
        texts = [text for drawing in drawn for text in drawing]
        for part in (*pipelines.CUTS, *pipelines.MARKING, *pipelines.AGAIN, "cut=false", "join", "fsdp-gathers{policy=save"):
            self.assertTrue(any(part in text for text in texts), part)
        after = [text.split(pipelines.INFERENCE)[1] for text in texts if pipelines.INFERENCE in text]
        self.assertTrue(after)
        self.assertFalse([text for text in after if "partition" in text or "join" in text])

    def test_forward_of_a_joint_graph_has_no_tangents_and_no_gradients(self):
        programs = []
        for seed in range(8):
            with contextlib.suppress(Unusable):
                programs.append(families.make(seed, "joint")[0])
        self.assertGreater(len(programs), 4)
        for program in programs:
            forward = program.forward()
            names = {node.name for node in forward.graph_module.graph.nodes}
            self.assertEqual(len(leaves_of(forward.graph_module)), program.num_forward_outputs)
            self.assertLess(len(forward.inputs()), len(program.inputs()))
            self.assertFalse([name for name in names if "tangent" in name])

    def test_variations_keep_what_a_graph_computes(self):
        def function(x):
            y = x.clone()
            y.t_()
            return y[1:].sum(0), y[0] * 2, x.view(-1)[2:8:3].add_(1)

        for vary in (soup._by_arguments, soup._by_indexes):
            with self.subTest(vary.__name__):
                graph_module = make_fx(function)(torch.arange(12.0).view(3, 4))
                program = Program(graph_module, lambda: [torch.arange(12.0).view(3, 4)])
                seen, before = campaign.run_graph(program, graph_module), str(graph_module.graph)
                for seed in range(4):
                    vary(program, pipelines.Dice(seed))
                graph_module.recompile()
                self.assertNotEqual(str(graph_module.graph), before)
                self.assertEqual(observe.differences(seen, campaign.run_graph(program, graph_module)), [])

    def test_symbols_are_given_other_sizes(self):
        for seed in range(60):
            program, _ = families.make(seed, "soup") if _is_program(seed) else (None, None)
            if program is not None and "other sizes" in program.features:
                traced = [node.meta["val"].shape for node in program.graph_module.graph.find_nodes(op="placeholder")]
                self.assertIn("s", str(traced))
                return
        self.fail("no seed has other sizes")


def _is_program(seed: int) -> bool:
    try:
        families.make(seed, "soup")
    except families.Unusable:
        return False
    return True


class Files(InFolder):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "graph.fxg"
        self.path.write_text(CSE, encoding="utf-8")

    def main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            code = differential.main([*map(str, arguments)])
        return code, out.getvalue()

    def test_equal_files_exit_with_0_and_unusable_ones_with_2(self):
        self.assertEqual(self.main("--judge", self.path, "--passes", "cse,dce"), (0, "equal\n"))
        self.assertEqual(self.main("--judge", self.path, "--passes", "nothing")[0], 2)
        for known, wrong in (("%x: f32[2, 4]", "%x"), ("(1, 2)", ""), ("f32[2] =", "f64[2] =")):
            self.path.write_text(CSE.replace(known, wrong), encoding="utf-8")
            self.assertEqual(self.main("--judge", self.path, "--passes", "cse")[0], 2)

    def test_values_are_given_to_placeholders_by_name_also_where_the_file_has_none(self):
        values = self.path.with_name("values.pt")
        torch.save({"x": torch.full((2, 4), -0.0), "t": torch.ones(2, 4)}, values)
        for value in ("%x: f32[2, 4]", "%x"):
            self.path.write_text(CSE.replace("%x: f32[2, 4]", value), encoding="utf-8")
            with mock.patch.object(files.campaign, "run_graph", wraps=campaign.run_graph) as run:
                self.assertEqual(self.main("--judge", self.path, "--passes", "cse", "--values", values), (0, "equal\n"))
            self.assertTrue(torch.signbit(run.call_args_list[0].args[0].inputs()[0]).all())

    def test_apply_is_judged_too(self):
        self.path.write_text(CSE.replace("@main {", "@main {kind=forward_loss_backward} {"), encoding="utf-8")
        with mock.patch.object(files.Optimizer, "apply", autospec=True, side_effect=files.Optimizer.apply) as applied:
            self.assertEqual(self.main("--judge", self.path, "--passes", "cse", "--apply"), (0, "equal\n"))
        applied.assert_called_once()

    def test_a_difference_exits_with_1(self):
        run = files.Optimizer.run

        def run_wrong(optimizer, passes):
            """Acts as a wrong pass: sums over another dimension."""
            result = run(optimizer, passes)
            (node,) = result.graph_module.graph.find_nodes(op="call_function", target=aten.sum.dim_IntList)
            node.update_arg(1, [1])
            result.graph_module.recompile()
            return result

        with mock.patch.object(files.Optimizer, "run", run_wrong):
            code, text = self.main("--judge", self.path, "--passes", "cse")
        self.assertEqual(code, 1)
        self.assertIn("output 1: sizes (2,) became (4,)", text)


STATE = """graph @main {kind=joint, num_forward_outputs=2} {
  output_spec {role=mutation, of="s"}
  output_spec {role=user}
  output_spec {role=gradient, of="x"}
  %x: f32[4] = placeholder() {input={role=input}}
  %s: f32[4] = placeholder() {input={role=buffer}}
  %d: f32[4] = placeholder() {input={role=tangent}}
  %n: f32[4] = aten.add.Tensor(%s, %x)
  %c: f32[4] = aten.clone.default(%s)
  %y: f32[4] = aten.mul.Tensor(%x, %c)
  %g: f32[4] = aten.mul.Tensor(%d, %c)
  return (%n, %y, %g)
}
"""


class Pairs(InFolder):
    def setUp(self):
        super().setUp()
        path, self.fxopt = self.folder / "state.fxg", find_fxopt()
        path.write_text(STATE, encoding="utf-8")
        _, program = files.runnable(path, path.with_name("source.json"), self.fxopt)
        roles = {"x": {"role": "input"}, "s": {"role": "buffer"}, "d": {"role": "tangent"}}
        outputs = [{"role": "mutation", "of": "s"}, "user", {"role": "gradient", "of": "x"}]
        program.told |= {"roles": roles, "outputs": outputs, "num_forward_outputs": 2}
        self.subject = edits.PairSubject("state", program, self.fxopt, path.parent)

    def test_a_pair_is_proved_and_equal_as_it_was_cut_and_not_when_it_was_edited(self):
        self.assertEqual(self.subject.judge(UNCHANGED, pipelines.Dice(0)), ("proved", []))
        for name in ("user outputs exchanged", "an input returned in place of its new value", "another value saved by an op after it"):
            self.assertIn(name, PAIR_EDITS)
            verdict, found = self.subject.judge(name, pipelines.Dice(0))
            self.assertEqual((verdict, bool(found)), ("differs", True), name)

    def test_a_new_value_of_an_input_is_written_between_the_two_graphs(self):
        module = edits.Pair(self.subject.module)
        (saved,) = [leaf for leaf in module.saved_leaves if leaf["node"] == "c"]
        saved["node"] = "s"
        after = self.subject.folder / "late.json"
        edits.form.write_json(module.module, after)
        late = edits.optimize.runnable(module.module, after)
        found = observe.differences(self.subject.seen, campaign.run_graph(self.subject.program, late))
        self.assertEqual(found, ["output 2: data"])


class Campaign(unittest.TestCase):
    def test_a_result_that_the_verifier_refuses_is_wrong_and_a_refused_option_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            subject = campaign.Subject(3, find_fxopt(), pathlib.Path(folder), "soup")
            refused = FxoptError("error[FX0405]: after pass 1 (cse): alias", "FX0405", 4, [])
            with mock.patch.object(subject, "optimize", side_effect=refused):
                self.assertEqual(subject.judge("cse").differences, ["exit 4: error[FX0405]: after pass 1 (cse): alias"])
            run = subject.judge("cse{collectives=maybe}")
            self.assertEqual((run.differences, bool(run.refused)), ([], True))

    def test_some_programs_are_equal_before_and_after(self):
        fxopt = find_fxopt()
        known = pipelines.known_passes(fxopt)
        counts = tables.Tables([item.name for item in known], ["one object"])
        for seed in range(SEEDS):
            for item in campaign.judge_seed(seed, fxopt, known, 3):
                if isinstance(item, campaign.Outcome):
                    counts.add(item)
        self.assertEqual(counts.lines, [])
        self.assertGreater(counts.changed, SEEDS)
        self.assertGreater(counts.recomputed, SEEDS // 4)


if __name__ == "__main__":
    unittest.main()
