"""bridge.load(), apply() and run() on small graphs. Skipped without torch or the fxopt program."""

from __future__ import annotations

import collections
import enum
import gc
import json
import os
import subprocess
import sys
import types
import unittest
import weakref
from unittest import mock

from setting import SCRIPTS, imports_torch, need_program, need_safetensors

with imports_torch():
    import graph_description
    import torch
    from fxopt import bridge, objects, patcher, values
    from fxopt.tool import find_fxopt
    from small_graphs import Case, annotated, needs_marks
    from torch.fx._lazy_graph_module import _LazyGraphModule
    from torch.fx.experimental.proxy_tensor import make_fx
need_program()

aten = torch.ops.aten


class Colour(enum.Enum):
    RED = 3


def plain_function(x):
    return x + 1


class Pair(collections.namedtuple("Pair", "left right")):
    pass


def trace(function, *args, mode="fake", **options):
    torch.fx.traceback.current_meta.clear()
    return make_fx(function, tracing_mode=mode, **options)(*args)


def graph_of(build, **attributes):
    """A GraphModule with the nodes that `build` adds and with these attributes."""
    root = torch.nn.Module()
    for name, value in attributes.items():
        setattr(root, name, value)
    graph = torch.fx.Graph()
    build(graph)
    return torch.fx.GraphModule(root, graph)


class Load(Case):
    def test_views_symbols_and_constants_come_back(self):
        table = torch.arange(400.0)

        def function(x, y):
            rows = x.nonzero()
            half = y.shape[0] // 2
            return rows + 1, torch.cat([y, y[:half]]).view(-1, 1), (y * table[: y.shape[0]]).sum(), torch.tensor([1, 2])

        for mode in ("real", "symbolic"):
            with self.subTest(mode=mode):
                args = (torch.ones(4), torch.randn(6))
                traced = trace(function, *args, mode=mode, _allow_non_fake_inputs=True)
                loaded = self.round_trip(traced)
                for a, b in zip(bridge.run(traced, args), bridge.run(loaded, args)):
                    self.assertTrue(torch.equal(a, b))

    def test_what_makers_of_graphs_return_is_saved_with_its_roles(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(3, 2)
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                return self.linear(x)

        program = torch.export.export(Model(), (torch.zeros(4, 3),)).run_decompositions()
        bridge.save(program, self.folder / "exported.pb")
        main = bridge.read_module(self.folder / "exported.pb")["graphs"][0]
        roles = [node["input"]["role"] for node in main["nodes"] if "input" in node]
        expected = ["INPUT_ROLE_PARAMETER", "INPUT_ROLE_PARAMETER", "INPUT_ROLE_BUFFER", "INPUT_ROLE_INPUT"]
        self.assertEqual(roles, expected)
        self.assertEqual(bridge.load(self.folder / "exported.pb").code, program.graph_module.code)
        with self.assertRaisesRegex(TypeError, "not a graph: an object of type int"):
            bridge.save(3, self.folder / "x.pb")

    def test_what_torch_compile_captures_comes_back(self):
        captured = []

        def backend(graph_module, inputs):
            captured.append(self.round_trip(graph_module))
            return graph_module

        torch._dynamo.reset()
        module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
        torch.compile(module, backend=backend, dynamic=True)(torch.randn(3, 4))
        self.assertTrue(captured)

    def test_a_generator_keeps_its_device_where_there_is_none(self):
        def build(graph):
            state = graph.placeholder("state")
            state.meta["val"] = torch.Generator()
            absent = graph.placeholder("absent")
            absent.meta["val"] = values.AbsentGenerator("cuda:0")
            graph.output((state, absent))

        if torch.cuda.is_available():
            self.skipTest("there is a GPU here, whose generator is loaded")
        self.round_trip(graph_of(build))

    def test_each_form_of_file_gives_the_same(self):
        traced = trace(lambda x: x.t()[1:].conj(), torch.zeros(3, 3, dtype=torch.complex64))
        for form in ("pb", "fxg", "json", "pb.zst"):
            with self.subTest(form=form):
                self.round_trip(traced, form)

    def test_what_is_saved_again_has_the_same_bytes(self):
        traced = trace(lambda x, w: (x @ w).relu(), torch.zeros(2, 3), torch.zeros(3, 4), mode="symbolic")
        first, second = self.folder / "first.pb", self.folder / "second.pb"
        roles = ["input", {"role": "parameter", "fqn": "w", "static_address": True}]
        bridge.save(traced, first, kind="inference", roles=roles, outputs=["user"], recipe="made by hand")
        bridge.save(bridge.load(first), second)
        self.assertEqual(first.read_bytes(), second.read_bytes())

    def test_what_passes_wrote_is_kept_and_written_again(self):
        first, second, third = (self.folder / f"{name}.pb" for name in ("first", "second", "third"))
        traced = trace(lambda x: x.view(4).view(2, 2).relu() + x.view(4).view(2, 2).relu(), torch.zeros(2, 2, dtype=torch.int64))
        bridge.save(traced, first)
        run = subprocess.run([find_fxopt(), "opt", str(first), "-o", str(second), "--passes", "cse", "--no-prove"])
        self.assertEqual(run.returncode, 0)
        bridge.save(bridge.load(second), third)
        self.assertEqual(second.read_bytes(), third.read_bytes())
        nodes = bridge.read_module(third)["graphs"][0]["nodes"]
        self.assertIn("ORIGIN_MERGED", {origin["kind"] for node in nodes for origin in node.get("origins", ())})

    def test_metadata_comes_back_by_value_and_type(self):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        x, add = list(traced.graph.nodes)[:2]
        add.meta["mine"] = {
            "colour": Colour.RED,
            1: (True, None, 2.5, float("nan"), 1j, b"\x00\xff", torch.float16, torch.device("cuda:1"), ...),
            "set": {"b", "a"},
            "frozen": frozenset({1}),
            "ordered": collections.OrderedDict(b=1, a=2),
            "size": torch.Size([2, 3]),
            "pair": Pair(1, [2]),
            "node": x,
            "op": aten.mm.default,
            "class": torch.nn.Linear,
            "big": 2**64 + 1,
            "slice": slice(1, None, 2),
            "source": [torch.fx.traceback.NodeSource(x, "a_pass")],
        }
        add.meta |= {"custom": {"module_fqn": "a"}, "seq_nr": -1, "autograd_backward": True, "ac_graph_id": None}
        add.meta["recompute"] = torch.utils.checkpoint.CheckpointPolicy.MUST_CPU_OFFLOAD
        add.type = torch.Tensor
        traced.recompile()
        traced.meta["note"] = ["of the graph"]
        loaded = self.round_trip(traced)
        again = list(loaded.graph.nodes)[1].meta
        self.assertIs(again["recompute"], add.meta["recompute"])
        self.assertEqual(again["mine"]["pair"], Pair(1, [2]))
        self.assertIs(again["mine"]["node"], next(iter(loaded.graph.nodes)))

    def test_results_with_names_keep_their_class(self):
        captured = []

        def backend(graph_module, _):
            captured.append(graph_module)
            return graph_module.forward

        torch.compile(lambda x: torch.max(x, 0).values + torch.topk(x, 2)[0][0, :2], backend=backend)(torch.ones(3, 2))
        loaded = self.round_trip(captured[0])
        kinds = {type(node.meta.get("example_value")) for node in loaded.graph.nodes}
        self.assertLessEqual({torch.return_types.max, torch.return_types.topk}, kinds)

    def test_a_region_told_twice_stays_told_twice(self):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        list(traced.graph.nodes)[1].meta |= {"ac_graph_id": 7, "custom": {"module_fqn": "a", "ac_region_id": 7}}
        self.round_trip(traced)

    def test_classes_that_no_import_finds_become_names_in_stacks_and_errors_elsewhere(self):
        class Local:
            pass

        traced = trace(lambda x: x + 1, torch.zeros(2))
        meta = list(traced.graph.nodes)[1].meta
        meta["nn_module_stack"] = {"k": ("path", Local)}
        loaded = self.round_trip(traced)
        name = list(loaded.graph.nodes)[1].meta["nn_module_stack"]["k"][1]
        self.assertTrue(name.endswith("<locals>.Local"))
        self.assertEqual(list(self.round_trip(loaded).graph.nodes)[1].meta["nn_module_stack"]["k"][1], name)
        meta["other"] = Local
        with self.assertRaisesRegex(bridge.ExportError, "%add: metadata 'other': .*Local, which no import finds"):
            bridge.save(traced, self.folder / "x.pb")

    def test_classes_that_the_reader_lacks_are_names_from_then_on(self):
        library = types.ModuleType("fxopt_test_library")
        library.Block = type("Block", (), {"__module__": library.__name__})
        traced = trace(lambda x: x + 1, torch.zeros(2))
        list(traced.graph.nodes)[1].meta["nn_module_stack"] = {"k": ("path", library.Block)}
        paths = [self.folder / f"{i}.pb" for i in range(3)]
        with mock.patch.dict(sys.modules, {library.__name__: library}):
            bridge.save(traced, paths[0])
        objects.find.cache_clear()
        for source, target in zip(paths, paths[1:]):
            bridge.save(bridge.load(source), target)
        first, second, third = (path.read_bytes() for path in paths)
        self.assertNotEqual(first, second)
        self.assertEqual(second, third)

    def test_subgraphs_and_shared_subgraphs_come_back(self):
        def function(x):
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

        loaded = self.round_trip(trace(function, torch.ones(3)))
        self.assertTrue(torch.equal(bridge.run(loaded, [torch.ones(3)]), torch.full((3,), 2.0)))
        inner = trace(lambda x: x + 1, torch.zeros(1))
        shared = graph_of(lambda graph: graph.output((graph.get_attr("a"), graph.get_attr("b"))), a=inner, b=inner)
        loaded = self.round_trip(shared)
        self.assertIs(loaded.a, loaded.b)

    def test_constants_keep_data_kind_and_strides(self):
        root = torch.nn.Module()
        root.weight = torch.nn.Parameter(torch.randn(3, 4).t())
        root.register_buffer("kept", torch.arange(3, dtype=torch.int16))
        root.register_buffer("lost", torch.ones(2, dtype=torch.bool), persistent=False)
        root.inner = torch.nn.Module()
        root.inner.register_buffer("large", torch.randn(400))
        graph = torch.fx.Graph()
        names = ("weight", "kept", "lost", "inner.large", "plain")
        root.plain = torch.zeros(())
        graph.output(tuple(graph.get_attr(name) for name in names))
        graph_module = torch.fx.GraphModule(root, graph)
        del graph_module._buffers["plain"]
        graph_module.plain = root.plain
        need_safetensors(self)
        loaded = self.round_trip(graph_module)
        self.assertEqual(loaded.weight.stride(), (1, 4))
        self.assertTrue(torch.equal(loaded.inner.large, root.inner.large))

    def hold(self, **tensors):
        """A GraphModule that returns these tensors, as buffers and parameters of its own."""
        return graph_of(lambda graph: graph.output(tuple(graph.get_attr(name) for name in tensors)), **tensors)

    def test_constants_share_what_they_shared(self):
        need_safetensors(self)
        weight = torch.nn.Parameter(torch.randn(20, 20))
        large, small = torch.arange(2000.0), torch.arange(6.0)
        views = {"a": large[:1000], "b": large[500:1700], "t": large.view(40, 50).t(), "e": large[3:4].expand(400)}
        held = self.hold(w=weight, again=weight, detached=weight.detach(), c=small[1:], d=small.view(2, 3).t(), **views)
        for form in ("pb", "json"):
            with self.subTest(form):
                loaded = self.round_trip(held, form)
                self.assertIs(loaded.w, loaded.again)
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(held(), loaded())))
                loaded.a[600] = -1
                self.assertEqual((loaded.b[100].item(), loaded.t[0, 12].item()), (-1, -1))

    def test_constants_of_each_kind_come_back(self):
        pair = torch.randn(3, dtype=torch.complex64)
        fakes = {"m": torch.ones(3, device="meta"), "p": torch.nn.Parameter(torch.ones(3, device="meta"))}
        data = {"conj": pair.conj(), "neg": pair.conj().imag, "none": torch.empty(0, 3)}
        data["complex_half"] = pair.to(torch.complex32)
        loaded = self.round_trip(self.hold(**data, **fakes))
        self.assertTrue(torch.equal(loaded.conj, pair.conj()))
        self.assertTrue(torch.equal(loaded.neg, pair.conj().imag))
        need_safetensors(self)
        wide = torch.randn(300, dtype=torch.complex128)
        self.assertTrue(torch.equal(self.round_trip(self.hold(wide=wide.conj())).wide, wide.conj()))

    def test_files_in_one_folder_have_constants_of_their_own(self):
        need_safetensors(self)
        for name, value in (("step.forward.pb", 1.0), ("step.backward.pb.zst", 2.0)):
            bridge.save(self.hold(t=torch.full((400,), value)), self.folder / name)
        self.assertEqual(bridge.load(self.folder / "step.forward.pb").t[0].item(), 1)
        self.assertEqual(bridge.load(self.folder / "step.backward.pb.zst").t[0].item(), 2)

    def test_values_on_the_meta_device_are_fake(self):
        self.round_trip(trace(lambda x: x + 1, torch.zeros(3, device="meta")))

    def test_a_module_in_eval_mode_stays_in_it(self):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        traced.eval()
        self.assertFalse(self.round_trip(traced).training)

    def test_values_enter_the_given_fake_mode(self):
        traced = trace(lambda x: x.view(-1) + 1, torch.zeros(4, 6), mode="symbolic")
        bridge.save(traced, self.folder / "x.pb")
        environment = torch.fx.experimental.symbolic_shapes.ShapeEnv()
        mode = torch._subclasses.FakeTensorMode(shape_env=environment)
        loaded = bridge.load(self.folder / "x.pb", fake_mode=mode)
        values = [node.meta["val"] for node in loaded.graph.nodes if node.op != "output"]
        self.assertTrue(all(value.fake_mode is mode for value in values if isinstance(value, torch.Tensor)))
        self.assertEqual(int(values[0].shape[1]), 6)


class HardToLoad(Case):
    """Features of real graphs that other tools refuse: the graph loads unchanged, and `verify`
    reports them."""

    def test_python_functions_and_nodes_without_values(self):
        def build(graph):
            graph.output(graph.call_function(plain_function, (graph.placeholder("x"),)))

        loaded = self.round_trip(graph_of(build))
        self.assertEqual(bridge.run(loaded, [1]), 2)
        code, text = self.verify(graph_of(build))
        self.assertEqual(code, 0, text)
        self.assertIn("plain_function", text)

    def test_wrong_order(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        late = graph.call_function(aten.neg.default, (x,))
        early = graph.call_function(aten.relu.default, (late,))
        graph.output(early)
        late.prepend(early)
        graph_module = torch.fx.GraphModule(torch.nn.Module(), graph)
        loaded = self.round_trip(graph_module)
        self.assertEqual([node.name for node in loaded.graph.nodes], ["x", "relu_default", "neg_default", "output"])
        code, text = self.verify(graph_module)
        self.assertEqual(code, 4, text)
        self.assertIn("relu", text)
        with self.assertRaises(bridge.FxoptError) as caught:
            bridge.apply(graph_module, "dce")
        self.assertEqual(caught.exception.exit_code, 3)


class CannotBeSaved(Case):
    """Each case gives one clear error that names the place."""

    def refuse(self, graph_module, message):
        with self.assertRaisesRegex(bridge.ExportError, message):
            bridge.save(graph_module, self.folder / "x.pb")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_lambda(self):
        called = graph_of(lambda graph: graph.output(graph.call_function(lambda x: x, (graph.placeholder("x"),))))
        self.refuse(called, "no import finds this function again; define it at the top of a module")
        held = graph_of(lambda graph: graph.output(graph.get_attr("f")), f=lambda x: x)
        self.refuse(held, "graph 'main': attribute 'f': an object of type function cannot be written")

    def test_a_constant_without_a_form(self):
        held = graph_of(lambda graph: graph.output(graph.get_attr("lock")), lock=collections.deque([1]))
        self.refuse(held, "attribute 'lock': an object of type collections.deque cannot be written")

    def test_a_tensor_subclass(self):
        class Mine(torch.Tensor):
            pass

        held = graph_of(lambda graph: graph.output(graph.get_attr("t")), t=torch.zeros(2).as_subclass(Mine))
        self.refuse(held, "attribute 't': a tensor of type .*Mine: trace the plain tensors inside it")

    def test_tensors_with_more_than_sizes_and_strides(self):
        for made, kind in (
            (torch.eye(3).to_sparse(), "layout torch.sparse_coo"),
            (torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8), "quantized"),
            (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
        ):
            held = graph_of(lambda graph: graph.output(graph.get_attr("t")), t=made)
            self.refuse(held, f"attribute 't': a tensor \\({kind}\\) cannot be written")
            called = trace(lambda x: x + 1, torch.zeros(2))
            list(called.graph.nodes)[1].meta["val"] = made
            self.refuse(called, f"%add .*a tensor \\({kind}\\)")

    def test_a_tensor_inside_vmap(self):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        last = list(traced.graph.nodes)[1]

        def body(x):
            last.meta["val"] = x
            self.refuse(traced, "%add .*a tensor inside vmap or grad")
            return x

        torch.vmap(body)(torch.zeros(2, 2))

    def test_a_failed_save_leaves_constants_as_they_were(self):
        need_safetensors(self)
        held = graph_of(lambda graph: graph.output(graph.get_attr("t")), t=torch.zeros(400))
        with self.assertRaisesRegex(RuntimeError, "no fxopt program"):
            bridge.save(held, self.folder / "x.pb", fxopt="/no/such/program")
        self.assertEqual(list(self.folder.iterdir()), [])
        bridge.save(held, self.folder / "x.pb")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        held.t.add_(1)
        with self.assertRaisesRegex(RuntimeError, "no fxopt program"):
            bridge.save(held, self.folder / "x.pb", fxopt="/no/such/program")
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_a_tensor_with_data_in_metadata(self):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        list(traced.graph.nodes)[1].meta["example"] = torch.zeros(2)
        self.refuse(traced, "%add: metadata 'example': a tensor with data")


class CannotBeLoaded(Case):
    def load(self, change):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        path = self.folder / "x.json"
        bridge.save(traced, path)
        document = json.loads(path.read_text(encoding="utf-8"))
        change(document["module"]["graphs"][0])
        path.write_text(json.dumps(document), encoding="utf-8")
        return bridge.load(path)

    def test_an_operator_that_is_not_there(self):
        def change(graph):
            graph["nodes"][1]["target"] = "mylib.missing.default"

        message = "graph 'main', node %add: this process has no 'mylib.missing.default'; import the module"
        with self.assertRaisesRegex(bridge.LoadError, message):
            self.load(change)

    def test_a_file_cannot_make_this_process_import_or_call_what_it_likes(self):
        def import_it(graph):
            graph["nodes"][1]["target"] = "antigravity.fly"

        def call_it(graph):
            typed = {"type": "subprocess.Popen", "items": [{"key": {"string": "args"}, "value": {"string": "true"}}]}
            graph["nodes"][1]["meta"] = [{"key": "evil", "value": {"dict": typed}}]

        for change in (import_it, call_it):
            with self.subTest(change=change.__name__), self.assertRaises(bridge.LoadError):
                self.load(change)
        self.assertNotIn("antigravity", sys.modules)

    def test_a_file_cannot_smuggle_code_into_what_is_generated(self):
        made = self.folder / "made"
        code = f"open({str(made)!r}, 'w')"
        spec = ["1", {"type": "builtins.list", "context": None, "children_spec": []}]
        spec[1]["context"] = json.dumps({"__enum__": True, "fqn": "antigravity:Fly", "name": "UP"})

        def codegen(argument, in_spec):
            told = {"class": {"string": "_PyTreeCodeGen"}, "orig_args": {"list": {"items": [{"string": argument}]}}}
            items = [{"key": {"string": key}, "value": value} for key, value in told.items()]
            meta = [{"key": "fx.codegen", "value": {"dict": {"items": items}}}]
            return lambda graph: graph.update(in_spec=in_spec, out_spec=in_spec, meta=meta)

        def kwargs(name):
            return lambda graph: graph["nodes"][1].update(kwargs=[{"name": name, "arg": {"int_value": 1}}])

        cases = {
            "placeholder": lambda graph: graph["nodes"][0].update(target=f"x={code}"),
            "node": lambda graph: graph["nodes"][1].update(name=f"a = 1\n{code}\nb"),
            "method": lambda graph: graph["nodes"][1].update(kind="NODE_KIND_CALL_METHOD", target=f"a()\n{code}\nb"),
            "attribute": lambda graph: graph["nodes"][1].update(kind="NODE_KIND_GET_ATTR", target=f'a")\n{code}\n("'),
            "keyword": kwargs(f"a=0)\n{code}\nprint("),
            "argument": codegen(f"x={code}", json.dumps(spec).replace("antigravity:Fly", "torch:Tag")),
            "enumerator": codegen("x", json.dumps(spec)),
        }
        for name, change in cases.items():
            message = "not a Python name|not an attribute path|this process has no"
            with self.subTest(name), self.assertRaisesRegex(bridge.LoadError, message):
                self.load(change)
        self.assertFalse(made.exists())
        self.assertNotIn("antigravity", sys.modules)

    def test_a_damaged_file_is_one_error_that_says_where(self):
        def sizes(graph):
            graph["nodes"][0]["value"]["tensor"]["dtype"] = "DTYPE_LOAD"

        cases = {
            "graph 'main', node %x_1: .*DTYPE_LOAD": sizes,
            "graph 'main', node %add: it reads %nope": lambda graph: graph["nodes"][1].update(args=[{"node": "nope"}]),
            "x.json: .*RecursionError": lambda graph: graph.update(attributes=[{"path": "a", "graph": "main"}]),
            "attribute 'a': no constant 'c'": lambda graph: graph.update(attributes=[{"path": "a", "constant": "c"}]),
        }
        for message, change in cases.items():
            with self.subTest(message), self.assertRaisesRegex(bridge.LoadError, message):
                self.load(change)
        path = self.folder / "x.json"
        for text in ("", "[]", "{}", '{"module": {"graphs": []}}'):
            path.write_text(text)
            with self.subTest(text), self.assertRaisesRegex(bridge.LoadError, "x.json: the file describes no valid graph"):
                bridge.load(path)

    def test_what_the_program_refuses_has_its_code(self):
        path = self.folder / "x.pb"
        path.write_bytes(b"\x0d\x46\x58\x47\x31 no module")
        with self.assertRaises(bridge.FxoptError) as caught:
            bridge.load(path)
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertRegex(caught.exception.code, r"FX03\d\d")


class Apply(Case):
    def test_the_module_is_patched_in_place(self):
        traced = trace(lambda x: x.relu().view(4).view(2, 2) + x.relu(), torch.zeros(2, 2, dtype=torch.int64))
        nodes = {node.name: node for node in traced.graph.nodes}
        metas = {name: node.meta for name, node in nodes.items()}
        values = {name: node.meta.get("val") for name, node in nodes.items()}
        self.assertIs(bridge.apply(traced, "canonicalize,cse,dce"), traced)
        traced.graph.lint()
        left = list(traced.graph.nodes)
        self.assertEqual([node.name for node in left], ["x_1", "relu", "add", "output"])
        for node in left:
            self.assertIs(node, nodes[node.name])
            self.assertIs(node.meta, metas[node.name])
            self.assertIs(node.meta.get("val"), values[node.name])
        self.assertEqual(list(left[2].args), [left[1], left[1]])
        self.assertTrue(torch.equal(bridge.run(traced, [torch.ones(2, 2)]), torch.full((2, 2), 2.0)))

    def test_a_pipeline_stands_in_a_list_of_passes(self):
        traced = trace(lambda x: x.relu().view(4).view(2, 2), torch.zeros(2, 2))
        result = traced
        for graph_pass in (bridge.graph_pass("canonicalize"), bridge.graph_pass("dce", options=["--strict-tags"])):
            result = graph_pass(result, (torch.zeros(2, 2),))
        self.assertIs(result, traced)
        self.assertEqual(len(traced.graph.nodes), 3)
        self.assertEqual(graph_pass.__name__, "fxopt(dce)")

    def test_no_passes_change_nothing(self):
        traced = trace(lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)), torch.ones(3))
        known = graph_description.describe(traced)
        bridge.apply(traced, "")
        self.assertEqual(graph_description.differences(known, graph_description.describe(traced)), [])

    def tagged_step(self):
        """A traced step whose forward nodes are tagged for recomputation."""

        def step(x, w):
            h = (x @ w).tanh()
            loss = (h @ w).sum()
            return loss, torch.autograd.grad(loss, w)[0]

        traced = annotated(step, torch.ones(2, 2), torch.ones(2, 2, requires_grad=True))
        policy = torch.utils.checkpoint.CheckpointPolicy
        for node in traced.graph.nodes:
            if node.op == "call_function" and not node.meta.get("autograd_backward"):
                node.meta |= {"recompute": policy.PREFER_RECOMPUTE, "custom": {"module_fqn": "layers.0"}}
        return traced

    @needs_marks
    def test_copies_have_metadata_and_values_of_their_own(self):
        traced = self.tagged_step()
        originals = {node.name: node for node in traced.graph.nodes}
        bridge.apply(traced, "canonicalize,remat,dce")
        traced.graph.lint()
        copies = [node for node in traced.graph.nodes if node.name.endswith("_recomputed")]
        self.assertTrue(copies)
        for copy in copies:
            original = originals[copy.name.removesuffix("_recomputed")]
            self.assertTrue(copy.meta["autograd_backward"])
            self.assertEqual(copy.meta["custom"], original.meta["custom"])
            self.assertIsNot(copy.meta["custom"], original.meta["custom"])
            mine, theirs = copy.meta["val"], original.meta["val"]
            self.assertEqual((mine.shape, mine.stride(), mine.fake_mode), (theirs.shape, theirs.stride(), theirs.fake_mode))
            self.assertNotEqual(mine.untyped_storage()._cdata, theirs.untyped_storage()._cdata)

    def test_every_graph_has_the_code_of_its_nodes_where_the_main_one_waits_with_its_own(self):
        plain = trace(lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y + 2, (x,)), torch.ones(3))
        for traced in plain, _LazyGraphModule(plain, plain.graph):
            for branch in traced.children():
                (add,) = branch.graph.find_nodes(op="call_function", target=aten.add.Tensor)
                add.args = (add.args[0], add.args[1] + 1)
            bridge.apply(traced, "")
            for module in (*traced.children(), traced):
                self.assertEqual(module.code, module.graph.python_code("self").src)

    def test_an_error_has_the_tools_code_and_leaves_the_module(self):
        traced = trace(lambda x: x + 1, torch.zeros(2))
        known = graph_description.describe(traced)
        with self.assertRaisesRegex(bridge.FxoptError, "did you mean") as caught:
            bridge.apply(traced, "csee")
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertEqual(caught.exception.code, caught.exception.errors[0]["code"])
        self.assertRegex(caught.exception.code, r"FX\d{4}")
        self.assertEqual(graph_description.differences(known, graph_description.describe(traced)), [])

    @needs_marks
    def test_the_callers_shape_environment_is_not_asked(self):
        def step(x, w):
            loss = w.split(3)[1].sin().clone().exp().sin().cos().sum() * x.sum()
            return loss, torch.autograd.grad(loss, w)[0]

        traced = annotated(step, torch.ones(5, 5), torch.ones(5, 5, requires_grad=True), mode="symbolic")
        for node in traced.graph.nodes:
            if node.op == "call_function" and not node.meta.get("autograd_backward"):
                node.meta["recompute"] = torch.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE
        env = traced.shape_env
        known = [str(guard.expr) for guard in env.guards], {str(s): str(r) for s, r in env.replacements.items()}
        bridge.save(traced, self.folder / "x.pb")
        bridge.apply(traced, "canonicalize,remat,dce")
        self.assertTrue(any(node.name.endswith("_recomputed") for node in traced.graph.nodes))
        now = [str(guard.expr) for guard in env.guards], {str(s): str(r) for s, r in env.replacements.items()}
        self.assertEqual(now, known)

    @needs_marks
    def test_a_patch_that_fails_leaves_the_module(self):
        traced = self.tagged_step()
        known, nodes = graph_description.describe(traced), list(traced.graph.nodes)
        give_meta = patcher._Patch._give_meta

        def fail_at_the_last_copy(patch, node, message, names):
            give_meta(patch, node, message, names)
            if node.name == "tanh_recomputed":
                raise LookupError(node.name)

        with mock.patch.object(patcher._Patch, "_give_meta", fail_at_the_last_copy), self.assertRaises(LookupError):
            bridge.apply(traced, "canonicalize,remat,dce")
        self.assertEqual(list(traced.graph.nodes), nodes)
        traced.graph.lint()
        traced.recompile()
        self.assertEqual(graph_description.differences(known, graph_description.describe(traced)), [])

    def test_what_has_no_form_stays_where_it_is(self):
        marker = collections.deque([1])

        def build(graph):
            x = graph.placeholder("x")
            kept = graph.call_function(lambda value, tag: value, (x, marker))
            other = graph.call_function(lambda value, tag: value + 1, (kept, marker))
            graph.call_function(aten.neg.default, (x,))
            graph.output(graph.call_function(aten.alias.default, (other,)))

        graph_module = graph_of(build)
        targets = [node.target for node in graph_module.graph.nodes if node.op == "call_function"]
        bridge.apply(graph_module, "dce")
        left = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        self.assertEqual([node.target for node in left], [targets[0], targets[1], targets[3]])
        self.assertIs(left[0].args[1], marker)

    @needs_marks
    def test_values_without_a_form_stay_where_they_are(self):
        def body(x):
            traced = self.tagged_step()
            nodes = {node.name: node for node in traced.graph.nodes}
            nodes["tanh"].meta["val"] = x
            bridge.apply(traced, "canonicalize,remat,dce")
            traced.graph.lint()
            copied = next(node for node in traced.graph.nodes if node.name == "tanh_recomputed")
            self.assertIs(nodes["tanh"].meta["val"], x)
            self.assertIs(copied.meta["val"], x)
            return x

        torch.vmap(body)(torch.zeros(2, 2))

    def test_inferred_phases_become_marks(self):
        def step(x, w):
            loss = (x @ w).relu().sum()
            return loss, torch.autograd.grad(loss, w)[0]

        traced = trace(step, torch.ones(2, 2), torch.ones(2, 2, requires_grad=True))
        roles = ["input", {"role": "parameter", "fqn": "w"}]
        outputs = ["loss", {"role": "gradient", "of": "w_1"}]
        bridge.apply(traced, "infer-phase", kind="forward_loss_backward", roles=roles, outputs=outputs)
        marks = {node.name: node.meta.get("autograd_backward", False) for node in traced.graph.nodes}
        self.assertFalse(marks["mm"])
        self.assertTrue(marks["mm_1"])

    def test_roles_follow_what_a_caller_changes_between_two_passes(self):
        def told():
            traced = trace(lambda x, w: ((x @ w).sum(), x.t(), x @ w + 1), torch.ones(2, 2), torch.ones(2, 2))
            outputs = ["loss", {"role": "saved_value", "alias_of_input": 0}, {"role": "gradient", "of": "w_1"}]
            roles = ["input", {"role": "parameter", "fqn": "w"}]
            bridge.apply(traced, "cse", kind="forward", roles=roles, outputs=outputs, num_forward_outputs=2)
            return traced, list(traced.graph.nodes)

        def says(traced):
            bridge.apply(traced, "cse,dce")
            bridge.save(traced, self.folder / "x.json")
            main = bridge.read_module(self.folder / "x.json")["graphs"][0]
            roles = [spec.get("role", "").removeprefix("OUTPUT_ROLE_").lower() for spec in main["outputs"]]
            details = [spec.get(key) for spec in main["outputs"] for key in ("of", "alias_of_input") if key in spec]
            return roles, main.get("num_forward_outputs"), details

        def output(traced, *order):
            last = next(iter(reversed(traced.graph.nodes)))
            last.args = (tuple(last.args[0][i] for i in order),)

        for order, expected in (
            ((2, 0, 1), (["gradient", "loss", "saved_value"], None, ["w_1", 0])),
            ((0, 2), (["loss", "gradient"], 1, ["w_1"])),
            ((0, 1, 2, 0), (["loss", "saved_value", "gradient", ""], 2, [0, "w_1"])),
        ):
            with self.subTest(order):
                traced, _ = told()
                output(traced, *order)
                self.assertEqual(says(traced), expected)
        traced, nodes = told()
        nodes[1].target = "weight"
        nodes[1]._rename("weight")
        with traced.graph.inserting_before(nodes[0]):
            traced.graph.placeholder("first").meta["val"] = nodes[0].meta["val"]
        self.assertEqual(says(traced)[2], [1, "weight"])
        traced.graph.erase_node(next(iter(traced.graph.nodes)))
        output(traced, 0, 2)
        nodes[1].replace_all_uses_with(nodes[0])
        traced.graph.erase_node(nodes[1])
        self.assertEqual(says(traced)[2], [])

    def test_what_is_remembered_of_a_module_does_not_keep_it_alive(self):
        first = trace(lambda x: x.view(4).relu() + 1, torch.zeros(2, 2))
        bridge.save(first, self.folder / "x.pb")
        modules = [bridge.apply(first, "cse"), bridge.load(self.folder / "x.pb")]
        alive = [weakref.ref(module) for module in modules]
        del first, modules
        gc.collect()
        self.assertEqual([reference() for reference in alive], [None, None])


class OwnLibrary(Case):
    def test_an_op_registered_at_run_time_is_kept_and_optimized_around(self):
        library = torch.library.Library("fxopt_load_test", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.define("add_one_(Tensor(a!) x) -> ()")
        library.impl("add_one_", lambda x: (x.add_(1), None)[1], "CompositeExplicitAutograd")

        def function(x):
            y = torch.ops.fxopt_load_test.twice(x.view(4).view(2, 2))
            again = x.view(4).view(2, 2) * 1
            torch.ops.fxopt_load_test.add_one_(y)
            return y + again, x.view(4).view(2, 2) * 1

        traced = trace(function, torch.ones(2, 2, dtype=torch.int64))
        loaded = self.round_trip(traced)
        before = bridge.run(traced, [torch.ones(2, 2, dtype=torch.int64)])
        bridge.apply(loaded, "canonicalize,cse,dce")
        targets = [str(node.target) for node in loaded.graph.nodes if node.op == "call_function"]
        self.assertEqual(targets.count("aten.view.default"), 0)
        self.assertEqual(targets.count("aten.mul.Tensor"), 1)
        self.assertEqual([target for target in targets if "fxopt_load_test" in target][0], "fxopt_load_test.twice.default")
        after = bridge.run(loaded, [torch.ones(2, 2, dtype=torch.int64)])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(before, after)))


class Run(Case):
    def test_autograd_keeps_nothing_alive(self):
        kept = []

        class Count(torch.autograd.graph.saved_tensors_hooks):
            def __init__(self):
                super().__init__(lambda tensor: kept.append(tensor.shape) or tensor, lambda tensor: tensor)

        traced = trace(lambda x, w: (x @ w).tanh().exp(), torch.ones(2, 2), torch.ones(2, 2))
        args = [torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)]
        with Count():
            called = traced(*args)
        self.assertEqual(len(kept), 3, "the input of mm, the results of tanh and exp")
        self.assertIsNotNone(called.grad_fn)
        kept.clear()
        with Count():
            result = bridge.run(traced, args)
        gc.collect()
        self.assertEqual(kept, [])
        self.assertIsNone(result.grad_fn)
        self.assertTrue(torch.equal(result, called))

    def test_inputs_by_name(self):
        traced = trace(lambda a, b: a - b, torch.ones(1), torch.ones(1))
        names = [node.target for node in traced.graph.nodes if node.op == "placeholder"]
        result = bridge.run(traced, {names[1]: torch.tensor([1.0]), names[0]: torch.tensor([3.0])})
        self.assertEqual(result.item(), 2.0)


class Command(Case):
    def test_load_prints_the_code(self):
        traced = trace(lambda x: x.relu(), torch.zeros(2))
        bridge.save(traced, self.folder / "x.pb")
        command = [sys.executable, "-m", "fxopt"]
        environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
        load = [*command, "load", str(self.folder / "x.pb")]
        done = subprocess.run(load, capture_output=True, text=True, env=environment)
        self.assertEqual(done.stdout.strip(), traced.code.strip(), done.stderr)
        listed = subprocess.run([*command, "not-carried"], capture_output=True, text=True, env=environment)
        for key in bridge.NOT_CARRIED:
            self.assertIn(repr(key), listed.stdout)


if __name__ == "__main__":
    unittest.main()
