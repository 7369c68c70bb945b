"""Metadata of tracers that is no fact or that uses other names: storages of real mode, groups and
operators under other names, and functions made by functions. Skipped without torch or the fxopt
program."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import textwrap
import types
import unittest
import warnings

from setting import SCRIPTS, imports_torch, need_program

with imports_torch():
    import torch
    import torch.nn.functional as F
    from fxopt import bridge
    from fxopt.objects import defining_module, name_of, names_itself
    from fxopt.values import tensors_of
    from small_graphs import Case, needs_marks
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp
need_program()

aten = torch.ops.aten


def in_a_fresh_process(program: str, *arguments: object) -> str:
    """The output of a Python program that imports torch and fxopt.bridge."""
    head = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\nimport torch\nfrom fxopt import bridge\n"
    command = [sys.executable, "-c", head + textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def write_through_reshape(x):
    x.reshape(-1).add_(1)
    return [x * 1]


def write_after_to(x):
    x.mul_(3)
    y = x.to(torch.float32)
    z = x.view(-1)
    y.mul_(2)
    return [z * 1]


def write_through_dropout(x):
    y = torch.feature_dropout(x, 0.5, False)
    y.add_(1)
    return [x * 1]


class Storages(Case):
    """The sharing of storages is a fact only among the tensors of one fake mode."""

    def values(self, graph_module):
        """The Tensor message of each value in the saved file, by node."""
        path = self.folder / "values.json"
        bridge.save(graph_module, path)
        nodes = json.loads(path.read_text(encoding="utf-8"))["module"]["graphs"][0]["nodes"]
        return {node["name"]: node["value"]["tensor"] for node in nodes if "tensor" in node.get("value", {})}

    def storages(self, graph_module):
        return [value.get("storage") for value in self.values(graph_module).values()]

    def test_real_mode_records_none(self):
        traced = make_fx(lambda x: x[1:].t() + 1, pre_dispatch=True)(torch.ones(3, 2))
        self.assertEqual(set(self.storages(traced)), {None})
        loaded = self.round_trip(traced)
        self.assertEqual(set(self.storages(loaded)), {None})
        self.assertEqual(set(self.storages(copy.deepcopy(loaded))), {None})

    def test_writes_through_views_stay_in_a_trace_of_real_mode(self):
        for function in (write_through_reshape, write_after_to, write_through_dropout):
            traced = make_fx(function, pre_dispatch=True)(torch.ones(2, 2, 2))
            expected = bridge.run(traced, [torch.ones(2, 2, 2)])
            bridge.save(traced, self.folder / "x.pb")
            for subject in (bridge.load(self.folder / "x.pb"), traced):
                with self.subTest(function.__name__, is_loaded=subject is not traced):
                    bridge.apply(subject, "canonicalize,cse,dce")
                    (found,) = bridge.run(subject, [torch.ones(2, 2, 2)])
                    self.assertTrue(torch.equal(found, expected[0]))

    def test_run_takes_a_value_for_each_placeholder_of_a_joint_graph(self):
        def joint(primals, tangents):
            (x, y), (d,) = primals, tangents
            return [x * y], [d * y, None]

        x, y, d = (torch.full((2,), value) for value in (2.0, 3.0, 5.0))
        traced = make_fx(joint)([x, y], [d])
        flat, structured = bridge.run(traced, [x, y, d]), bridge.run(traced, [[x, y], [d]])
        for (product,), (gradient, none) in (flat, structured):
            self.assertEqual((product.tolist(), gradient.tolist(), none), ([6.0, 6.0], [15.0, 15.0], None))

    def test_one_mode_records_them(self):
        traced = make_fx(lambda x: x[1:].t() + 1, tracing_mode="fake", pre_dispatch=True)(torch.ones(3, 2))
        storages = self.storages(traced)
        self.assertEqual(len(set(storages)), 2)
        self.assertNotIn(None, storages)
        self.round_trip(traced)

    def test_the_mode_of_most_values_counts_and_one_of_a_single_value_does_not(self):
        traced = make_fx(lambda x: x.view(-1).neg() + 1, tracing_mode="fake")(torch.ones(2, 2))
        x, view, neg, add = list(traced.graph.nodes)[:4]
        with FakeTensorMode():
            other = torch.empty(2, 2)
            view.meta["val"] = other.view(-1)
        self.assertEqual(self.storages(traced), [0, None, 1, 2])
        x.meta["val"] = other
        self.assertEqual(self.storages(traced), [0, 0, None, None])  # a tie: the first mode counts
        for node in (view, neg, add):
            with FakeTensorMode():
                node.meta["val"] = torch.empty(4)
        self.assertEqual(self.storages(traced), [None] * 4)
        for node in (view, neg, add):
            del node.meta["val"]
        self.assertEqual(self.storages(traced), [0])

    def test_strides_and_offset_stay_where_the_storage_is_not_known(self):
        traced = make_fx(lambda x: x.t() + 1)(torch.ones(2, 3))
        for node in list(traced.graph.nodes)[:3]:
            with FakeTensorMode():
                node.meta["val"] = torch.empty(9)[2:8].view(2, 3).t()
        self.assertEqual(self.values(traced)["t"]["offset"], {"value": 2})
        bridge.save(traced, self.folder / "x.pb")
        value = list(bridge.load(self.folder / "x.pb").graph.nodes)[1].meta["val"]
        self.assertEqual((value.shape, value.stride(), value.storage_offset()), ((3, 2), (1, 3), 2))

    def test_constants_keep_theirs(self):
        root = torch.nn.Module()
        table = torch.arange(6.0)
        root.register_buffer("a", table[1:])
        root.register_buffer("b", table.view(2, 3))
        graph = torch.fx.Graph()
        graph.output((graph.get_attr("a"), graph.get_attr("b")))
        graph_module = torch.fx.GraphModule(root, graph)
        for node in list(graph.nodes)[:2]:
            with FakeTensorMode():
                node.meta["val"] = torch.empty(1)
        loaded = self.round_trip(graph_module)
        self.assertEqual(loaded.a.untyped_storage()._cdata, loaded.b.untyped_storage()._cdata)


class Groups(Case):
    def test_the_names_that_collectives_use_are_carried(self):
        made = in_a_fresh_process(
            """
            import torch.testing._internal.distributed.fake_pg as fake
            from torch.fx.experimental.proxy_tensor import make_fx
            c10d, calls = torch.distributed.distributed_c10d, torch.ops._c10d_functional
            c10d.init_process_group("fake", rank=0, world_size=4, store=fake.FakeStore())
            groups = [c10d.new_group([0, 1]), c10d.new_group([0, 2])]
            for name, group in zip(("521", "513"), groups):
                c10d._register_process_group(name, group)
            def gathered(x):
                parts = [calls.all_gather_into_tensor(x, 2, name) for name in ("521", "513")]
                return sum(map(calls.wait_tensor, parts))
            traced = make_fx(gathered, tracing_mode="fake")(torch.ones(2))
            bridge.save(traced, sys.argv[1])
            c10d._unregister_process_group("513")
            try:
                bridge.save(traced, sys.argv[1] + "x.pb")
            except bridge.ExportError as error:
                print(error)
            c10d._register_process_group("513", groups[1])
            bridge.apply(traced, "cse,dce")
            """,
            path := self.folder / "x.pb",
        )
        message = r"node %all_gather_into_tensor_1 \(_c10d_functional.all_gather_into_tensor.default\): its process group '513'"
        self.assertRegex(made, message + " is not known in this process.*; save where the group exists")
        groups = {group["uid"]: group["ranks"] for group in bridge.read_module(path)["groups"]}
        self.assertEqual(groups, {"0": [0, 1, 2, 3], "1": [0, 1], "2": [0, 2], "521": [0, 1], "513": [0, 2]})
        again = self.folder / "again.pb"
        printed = in_a_fresh_process(
            """
            bridge.init_fake_groups(bridge.read_module(sys.argv[1]))
            loaded = bridge.load(sys.argv[1])
            bridge.save(loaded, sys.argv[2])
            print(list(loaded(torch.ones(2)).shape))
            """,
            path,
            again,
        )
        self.assertEqual(printed, "[4]\n")
        self.assertEqual(path.read_bytes(), again.read_bytes())
        loaded = bridge.load(path)  # without process groups, the file's groups stay
        self.assertEqual(self.verify(loaded)[0], 0)

    def test_a_name_without_a_group_is_an_error(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        reduced = graph.call_function(torch.ops._c10d_functional.all_reduce.default, (x, "sum"), {"group_name": "pg"})
        graph.output(graph.call_function(torch.ops._c10d_functional.wait_tensor.default, (reduced,)))
        message = r"node %all_reduce_default \(_c10d_functional.all_reduce.default\): its process group 'pg' is not"
        with self.assertRaisesRegex(bridge.ExportError, message):
            bridge.save(torch.fx.GraphModule({}, graph), self.folder / "x.pb")


class Operators(Case):
    def test_an_optimizer_compiled_here_is_loaded_elsewhere(self):
        in_a_fresh_process(
            """
            from torch._dynamo.backends.common import aot_autograd
            from functorch.compile import make_boxed_func
            model = torch.nn.Linear(4, 4)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            model(torch.ones(2, 4)).sum().backward()
            def save(graph_module, _):
                bridge.save(graph_module, sys.argv[1], kind="optimizer")
                return make_boxed_func(graph_module.forward)
            torch.compile(optimizer.step, backend=aot_autograd(fw_compiler=save, inference_compiler=save))()
            """,
            path := self.folder / "x.pb",
        )
        module = bridge.read_module(path)
        targets = {node["target"] for node in module["graphs"][0]["nodes"]}
        if "prims.fma.default" not in targets:
            self.skipTest(f"torch {torch.__version__} has no fused multiply-add in Adam")
        printed = in_a_fresh_process("print(bridge.load(sys.argv[1]).code)", path)
        self.assertIn("torch.ops.prims.fma.default", printed)
        self.assertEqual(self.verify(bridge.load(path))[0], 0)

    def test_who_registers_an_operator(self):
        import torch._inductor.inductor_prims as prims

        self.assertEqual(defining_module(torch.ops.prims.inductor_seeds.default), prims.__name__)
        self.assertEqual(defining_module(torch.ops.prims.abs.default), "torch._prims")
        self.assertIsNone(defining_module(aten.mm.default))
        library = torch.library.Library("fxopt_bridge_test", "FRAGMENT")
        library.define("mine(Tensor x) -> Tensor")
        self.assertEqual(defining_module(torch.ops.fxopt_bridge_test.mine.default), __name__)

        def registered(function):
            @torch.library.custom_op("fxopt_bridge_test::made", mutates_args=())
            def made(x: torch.Tensor) -> torch.Tensor:
                return function(x)

            return made

        caller = types.ModuleType("fxopt_bridge_test_caller")
        self.addCleanup(sys.modules.pop, caller.__name__)
        sys.modules[caller.__name__] = caller
        exec("def twice(x):\n    return x * 2\n", vars(caller))
        caller.operator = registered(caller.twice)
        operator = torch.ops.fxopt_bridge_test.made.default
        self.assertEqual(defining_module(operator), caller.__name__)
        del caller.operator
        self.assertEqual(defining_module(operator), __name__)


class Functions(Case):
    def test_all_of_torch_nn_functional_has_names_that_lead_back(self):
        functions = [f for f in vars(F).values() if callable(f) and not isinstance(f, type | types.ModuleType)]
        self.assertGreater(len(functions), 100)
        self.assertEqual([name_of(f) for f in functions if not names_itself(f)], [])
        self.assertEqual(name_of(F.max_pool2d), "torch.nn.functional.max_pool2d")
        self.assertEqual(name_of(torch.unique), "torch.functional.unique")

    def test_pooling_is_carried(self):
        class Model(torch.nn.Module):
            def forward(self, x):
                return F.adaptive_max_pool2d(F.max_pool2d(x, 2), 1)

        loaded = self.round_trip(torch.fx.symbolic_trace(Model()))
        x = torch.randn(1, 2, 8, 8)
        self.assertTrue(torch.equal(loaded(x), Model()(x)))


class Values(Case):
    def test_lists_that_torch_fx_records_keep_their_class(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        parts = graph.call_function(aten.split.Tensor, (x, 2))
        rows = graph.call_function(aten.unbind.int, (x,))
        graph.output((parts, rows, graph.call_function(aten.max.dim, (x, 0))))
        graph_module = torch.fx.GraphModule({}, graph)
        FakeTensorProp(graph_module).propagate(torch.ones(4, 2))
        values = [node.meta["val"] for node in self.round_trip(graph_module).graph.nodes]
        self.assertEqual([type(value).__name__ for value in values[1:4]], ["immutable_list", "immutable_list", "tuple"])
        self.assertEqual([len(list(tensors_of(value))) for value in values[1:4]], [2, 4, 2])
        bridge.apply(graph_module, "canonicalize,cse,dce")
        self.assertEqual(self.verify(graph_module)[0], 0)

    def test_integers_have_64_bits_with_a_sign(self):
        def graph_of(number):
            graph = torch.fx.Graph()
            full = graph.call_function(aten.full.default, ([2], number), {"dtype": torch.uint64})
            viewed = graph.call_function(aten.view.default, (full, [2, number]))
            graph.output((full, viewed))
            return torch.fx.GraphModule({}, graph)

        for number in (2**63 - 1, -(2**63)):
            self.round_trip(graph_of(number))
        for number in (2**63, 2**64 - 1, -(2**63) - 1):
            with self.subTest(number):
                message = rf"node %full_default \(aten.full.default\): argument 'fill_value': the integer {number} cannot be"
                with self.assertRaisesRegex(bridge.ExportError, message):
                    bridge.save(graph_of(number), self.folder / "x.pb")
                # apply() need not save the integer.
                applied = bridge.apply(graph_of(number), "canonicalize,cse,dce")
                self.assertEqual(applied.code, graph_of(number).code)
        called = graph_of(1)
        called.graph.find_nodes(op="call_function", target=aten.view.default)[0].meta["mine"] = [2**64, 1]
        self.round_trip(called)


class Kinds(Case):
    """Records of backward in a file, and of the program that differentiates the graph."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3, 3))

        def forward(self, x):
            y = x @ self.weight
            return (y.detach() - y.sin()).sum()

    def main(self, graph, **told):
        path = self.folder / "x.json"
        bridge.save(graph, path, **told)
        self.module = json.loads(path.read_text(encoding="utf-8"))["module"]
        return self.module["graphs"][0]

    def test_graphs_of_aot_autograd_are_told_apart(self):
        from functorch.compile import make_boxed_func
        from torch._dynamo.backends.common import aot_autograd

        kinds = {}

        def keep(name):
            def compiler(graph_module, _):
                kinds[name] = self.main(graph_module).get("kind")
                return make_boxed_func(graph_module.forward)

            return compiler

        def partition(joint, inputs, **options):
            kinds["joint"] = self.main(joint)["kind"]
            return torch._functorch.partitioners.default_partition(joint, inputs, **options)

        compilers = {name: keep(name) for name in ("fw_compiler", "bw_compiler")}
        torch._dynamo.reset()
        torch.compile(self.Model(), backend=aot_autograd(**compilers, partition_fn=partition))(torch.ones(2, 3)).backward()
        expected = {"joint": "JOINT", "fw_compiler": "FORWARD", "bw_compiler": "BACKWARD"}
        self.assertEqual(kinds, {name: f"GRAPH_KIND_{kind}" for name, kind in expected.items()})

    def test_what_requires_grad_is_said_where_the_maker_knows(self):
        def asking(main):
            values = {node["name"]: node.get("value", {}).get("tensor", {}) for node in main["nodes"]}
            return {name for name, value in values.items() if value.get("requires_grad")}

        x = torch.ones(2, 3)
        program = torch.export.export(self.Model(), (x,))
        self.assertEqual(asking(self.main(program)), {"p_weight"})
        self.assertEqual(asking(self.main(program.module(check_guards=False))), {"weight"})
        self.assertTrue(self.module["constants"][0]["tensor"]["requires_grad"])
        self.main(torch.fx.symbolic_trace(self.Model()))
        self.assertTrue(self.module["constants"][0]["tensor"]["requires_grad"])
        found = []

        def backend(graph_module, _):
            found.append(asking(self.main(graph_module)))
            return graph_module.forward

        torch._dynamo.reset()
        torch.compile(self.Model(), backend=backend)(x)
        self.assertIn("y", found[0])
        self.assertFalse({name for name in found[0] if "detach" in name})


class Documented(Case):
    @needs_marks
    def test_the_lines_that_add_modules_and_roles(self):
        text = (SCRIPTS / "README.md").read_text(encoding="utf-8")
        (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        path = self.folder / "step.pb"
        in_a_fresh_process(block.replace('"step.pb"', repr(str(path))))
        main = bridge.read_module(path)["graphs"][0]
        self.assertEqual(main["kind"], "GRAPH_KIND_FORWARD_LOSS_BACKWARD")
        names = [node["input"].get("fqn") for node in main["nodes"] if "input" in node]
        self.assertEqual(names, ["0.weight", "0.bias", "2.weight", "2.bias", None])
        self.assertEqual([spec["role"] for spec in main["outputs"]], ["OUTPUT_ROLE_LOSS"] + ["OUTPUT_ROLE_GRADIENT"] * 4)
        places = {(node.get("module_path"), node.get("phase")) for node in main["nodes"]}
        backward = "PHASE_BACKWARD"
        self.assertLessEqual({("0", None), ("1", None), ("2", None), ("0", backward), ("1", backward)}, places)


class Marks(unittest.TestCase):
    """Marks of a first partition on nodes that a pass replaces, copies or erases."""

    @staticmethod
    def marked(function, *names):
        graph_module = make_fx(function, tracing_mode="fake")(torch.ones(4, 4), torch.ones(4, 4))
        for node in graph_module.graph.nodes:
            if node.name in names:
                node.meta["custom"] = {"ap_must_save": True, "other": node.name}
        return graph_module

    @staticmethod
    def custom(graph_module):
        return {node.name: node.meta["custom"] for node in graph_module.graph.nodes if node.meta.get("custom")}

    def test_a_mark_moves_with_the_value_and_other_metadata_stays(self):
        graph_module = self.marked(lambda x, d: (x.exp().view(4, 4).sin(), d * x.exp()), "view", "sin")
        bridge.apply(graph_module, "canonicalize")
        expected = {"exp": {"ap_must_save": True, "ap_must_save_as": "view"}, "sin": {"ap_must_save": True, "other": "sin"}}
        self.assertEqual(self.custom(graph_module), expected)

    def test_a_mark_that_ends_is_gone(self):
        graph_module = self.marked(lambda x, d: (*torch.topk(x, 1), d), "topk")
        output = graph_module.graph.output_node()
        output.args = (output.args[0][:1],)
        (topk,) = (node for node in graph_module.graph.nodes if node.name == "topk")
        topk.meta["custom"] = {"ap_must_save": True, "ap_must_save_getitem_indices": [1]}
        bridge.apply(graph_module, "dce")
        self.assertNotIn("custom", topk.meta)

    def test_copies_carry_no_mark(self):
        graph_module = self.marked(lambda x, d: (x.exp(), d * x.exp().cos()), "exp_1")
        for node in graph_module.graph.nodes:
            if node.name == "exp_1":
                node.meta["recompute"] = torch.utils.checkpoint.CheckpointPolicy.MUST_RECOMPUTE
            if node.name in ("cos", "mul"):
                node.meta["autograd_backward"] = True
        bridge.apply(graph_module, "remat")
        self.assertEqual(self.custom(graph_module), {"exp_1_recomputed": {"other": "exp_1"}})


class Warnings(unittest.TestCase):
    """Python code receives the warnings of the command line."""

    def applied(self, passes, *, marks_backward, policy="MUST_RECOMPUTE"):
        """The warnings of apply() on a graph with one recompute tag."""
        graph_module = make_fx(lambda x: x.sin().cos())(torch.ones(4))
        sin, cos = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        sin.meta["recompute"] = torch.utils.checkpoint.CheckpointPolicy[policy]
        if marks_backward:
            cos.meta["autograd_backward"] = True
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            bridge.apply(graph_module, passes)
        for each in told:
            self.assertIs(each.category, bridge.FxoptWarning)
            self.assertEqual(each.filename, __file__)
        return [str(each.message) for each in told]

    def test_what_is_carried_out_is_not_warned_of(self):
        # No warning about tags, only about a copy that saves nothing.
        (told,) = self.applied("remat,dce", marks_backward=True)
        self.assertIn("1 node recomputed, but no ideal peak fell", told)
        self.assertEqual(self.applied("cse", marks_backward=True, policy="MUST_SAVE"), [])

    def test_tags_that_nobody_carries_out(self):
        (told,) = self.applied("cse", marks_backward=True)
        self.assertIn("1 tag without effect (tags: 1 not judged)", told)

    def test_warnings_of_the_program(self):
        self.assertIn("[no-backward]", self.applied("remat", marks_backward=False)[0])
        named = self.applied('sac{policy=none,recompute="nosuch"},remat', marks_backward=True)
        self.assertIn("[no-match]", named[0])


class Result(Case):
    def test_save_returns_numbers_and_not_the_module(self):
        def branches(x):
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

        path = self.folder / "x.json"
        written = bridge.save(make_fx(branches, tracing_mode="fake")(torch.ones(2)), path)
        graphs = json.loads(path.read_text(encoding="utf-8"))["module"]["graphs"]
        self.assertEqual(written, bridge.Written(str(path), 3, sum(len(graph["nodes"]) for graph in graphs), 0, 0))
        self.assertLess(len(repr(written)), 200)

    def test_what_is_not_carried_is_listed(self):
        listed = " ".join(bridge.NOT_CARRIED_THINGS)
        for thing in ("storages of values in another fake mode", "sparse and quantized tensors", "do not fit in 64 bits"):
            self.assertIn(thing, listed)


if __name__ == "__main__":
    unittest.main()
