"""bridge.save() on small graphs: the JSON form of each hard feature. Skipped without torch."""

from __future__ import annotations

import enum
import json
import pathlib
import re
import tempfile
import unittest

from setting import imports_torch

with imports_torch():
    import torch
    import trace_gpu_free
    from fxopt import bridge
    from small_graphs import annotated, needs_marks
    from torch.fx.experimental.proxy_tensor import make_fx


class Colour(enum.Enum):
    RED = 3


def trace(function, *args, mode="fake"):
    torch.fx.traceback.current_meta.clear()
    return make_fx(function, tracing_mode=mode)(*args)


class Save(unittest.TestCase):
    def save(self, graph_module, **told):
        """The module as read back from the file, and its nodes by name."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "graph.json"
            bridge.save(graph_module, path, **told)
            document = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(document["version"], 0)
        self.module = document["module"]
        self.main = self.module["graphs"][0]
        self.nodes = {node["name"]: node for node in self.main["nodes"]}
        return self.module

    def tensor(self, name):
        return self.nodes[name]["value"]["tensor"]

    def find(self, target):
        return next(node for node in self.main["nodes"] if node["target"] == target)

    def meta(self, name):
        return {entry["key"]: entry["value"] for entry in self.nodes[name].get("meta", [])}

    def test_the_producer_is_of_the_version_of_the_project(self):
        build = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text(encoding="utf-8")
        version = re.search(r"project\(fxopt VERSION (\S+)", build)[1]
        self.assertEqual(self.save(trace(lambda x: x + 1, torch.zeros(2)))["producer"]["version"], version)

    # ---- values

    def test_views_share_the_storage_of_their_base(self):
        self.save(trace(lambda x: x.t()[1:].add(1), torch.zeros(2, 3)))
        base, view = self.find("x_1"), self.find("aten.t.default")
        sliced, result = self.find("aten.slice.Tensor"), self.find("aten.add.Tensor")
        tensors = [node["value"]["tensor"] for node in (base, view, sliced, result)]
        self.assertEqual([t["storage"] for t in tensors], [0, 0, 0, 1])
        self.assertEqual(tensors[2]["sizes"], [2, 2])
        self.assertEqual(tensors[2]["strides"], [1, 3])
        self.assertEqual(tensors[2]["offset"], {"value": 1})
        self.assertEqual([s["bytes"] for s in self.module["storages"]], [{"value": 24}, {"value": 16}])
        self.assertEqual(self.module["counters"], {"next_uid": 5, "next_storage": 2})

    def test_multiple_outputs_are_a_tuple_and_getitems_share_its_storages(self):
        self.save(trace(lambda x: torch.ops.aten.native_layer_norm(x, [4], None, None, 1e-5)[:2], torch.zeros(3, 4)))
        norm = self.find("aten.native_layer_norm.default")
        self.assertEqual(norm["args"][1:4], [{"ints": {"values": [4]}}, {"none": True}, {"none": True}])
        self.assertEqual(norm["args"][4], {"float_bits": "0x3ee4f8b588e368f1"})
        parts = [item["tensor"]["storage"] for item in norm["value"]["tuple"]["items"]]
        getitems = [node for node in self.main["nodes"] if node["target"] == "operator.getitem"]
        self.assertEqual([node["value"]["tensor"]["storage"] for node in getitems], parts[: len(getitems)])
        self.assertEqual(len(set(parts)), 3)

    def test_list_results_are_lists(self):
        self.save(trace(lambda x: x.split(2)[1] + 1, torch.zeros(4)))
        items = self.find("aten.split.Tensor")["value"]["list"]["items"]
        self.assertEqual([item["tensor"].get("offset") for item in items], [None, {"value": 2}])

    def test_in_place_ops_keep_the_storage(self):
        self.save(trace(lambda x: x.clone().relu_() + 1, torch.zeros(2)))
        clone, relu = self.find("aten.clone.default"), self.find("aten.relu_.default")
        self.assertEqual(relu["value"]["tensor"]["storage"], clone["value"]["tensor"]["storage"])

    def test_random_ops_are_written_with_their_arguments(self):
        self.save(trace(lambda x: torch.ops.aten.native_dropout(x, 0.25, True)[0], torch.zeros(8)))
        dropout = self.find("aten.native_dropout.default")
        self.assertEqual(dropout["args"][1:], [{"float_bits": "0x3fd0000000000000"}, {"bool_value": True}])
        mask = dropout["value"]["tuple"]["items"][1]["tensor"]
        self.assertEqual(mask["dtype"], "DTYPE_BOOL")

    def test_scalar_device_dtype_and_format_arguments(self):
        def function(x):
            return torch.ones_like(x, dtype=torch.bfloat16, memory_format=torch.preserve_format) * float("inf")

        self.save(trace(function, torch.zeros(2)))
        kwargs = {kwarg["name"]: kwarg["arg"] for kwarg in self.find("aten.ones_like.default")["kwargs"]}
        self.assertEqual(kwargs["dtype"], {"dtype": "DTYPE_BFLOAT16"})
        self.assertEqual(kwargs["memory_format"], {"memory_format": "MEMORY_FORMAT_PRESERVE"})
        self.assertEqual(self.find("aten.mul.Tensor")["args"][1], {"float_bits": "0x7ff0000000000000"})

    def test_integers_beyond_a_double_are_strings(self):
        self.save(trace(lambda x: torch.ops.aten.slice.Tensor(x, 0, 1, 2**63 - 1) + 1, torch.zeros(4)))
        self.assertEqual(self.find("aten.slice.Tensor")["args"][3], {"int_value": "9223372036854775807"})

    # ---- symbols

    def test_backed_symbols_have_site_range_and_hint(self):
        self.save(trace(lambda x: x.view(-1)[::2] * 2, torch.zeros(4, 6), mode="symbolic"))
        x = self.tensor("x_1")
        self.assertEqual(x["sizes"], [0, 0])
        rows, columns = (entry["expr"] for entry in x["symbolic_sizes"])
        record = next(s for s in self.module["symbols"] if s["name"] == columns)
        self.assertEqual(record["kind"], "SYMBOL_KIND_BACKED")
        self.assertEqual((record["hint"], record["min"], record.get("max")), (6, 2, None))
        self.assertEqual((record["graph"], record["node"], record["key_path"]), ("main", "x_1", [".size()", "[1]"]))
        product = self.find("aten.mul.Tensor")["value"]["tensor"]["symbolic_sizes"][0]["expr"]
        self.assertEqual(product, f"({rows} * {columns} + 1) // 2")
        size = self.module["storages"][0]["bytes"]["expr"]
        self.assertEqual(eval(size, {rows: 4, columns: 6}), 96)

    def test_unbacked_symbols_name_the_node_that_binds_them(self):
        self.save(trace(lambda x: x.nonzero() + 1, torch.ones(4), mode="symbolic"))
        record = next(s for s in self.module["symbols"] if s["kind"] == "SYMBOL_KIND_UNBACKED")
        self.assertEqual((record["name"], record["node"], record["min"]), ("u0", "nonzero", 0))
        self.assertEqual(record["key_path"], [".size()", "[0]"])
        self.assertNotIn("hint", record)
        bindings = self.meta("nonzero")["unbacked_bindings"]["dict"]["items"]
        self.assertEqual(bindings[0]["key"], {"expr": "u0"})

    def test_symbolic_arguments_are_expressions_of_nodes(self):
        self.save(trace(lambda x: x.expand(3, x.size(0)) + 1, torch.zeros(5), mode="symbolic"))
        size = self.find("aten.sym_size.int")
        self.assertEqual(size["value"]["symbolic"]["type"], "SYMBOL_TYPE_INT")
        shape = self.find("aten.expand.default")["args"][1]["list"]["items"]
        self.assertEqual(shape, [{"int_value": 3}, {"node": size["name"]}])

    # ---- graphs

    def test_subgraphs_of_higher_order_ops_are_graphs_with_an_owner(self):
        def function(x):
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

        module = self.save(trace(function, torch.ones(3)))
        names = [graph["name"] for graph in module["graphs"]]
        self.assertEqual(names, ["main", "main.true_graph_0", "main.false_graph_0"])
        self.assertEqual(self.find("higher_order.cond")["args"][1], {"node": "true_graph_0"})
        self.assertEqual(self.main["attributes"][0], {"path": "true_graph_0", "graph": "main.true_graph_0"})
        subgraph = module["graphs"][1]
        self.assertEqual((subgraph["kind"], subgraph["owner"]), ("GRAPH_KIND_SUBGRAPH", "main"))
        uids = [node["uid"] for graph in module["graphs"] for node in graph["nodes"]]
        self.assertEqual(uids, list(range(len(uids))))

    def test_a_graph_named_twice_has_no_owner(self):
        inner = trace(lambda x: x + 1, torch.zeros(1))
        root = torch.nn.Module()
        root.a = root.b = inner
        graph = torch.fx.Graph()
        graph.output((graph.get_attr("a"), graph.get_attr("b")))
        module = self.save(torch.fx.GraphModule(root, graph))
        self.assertEqual([g["name"] for g in module["graphs"]], ["main", "main.a"])
        self.assertNotIn("owner", module["graphs"][1])
        self.assertEqual([a["graph"] for a in module["graphs"][0]["attributes"]], ["main.a", "main.a"])

    def test_none_outputs_are_leaves(self):
        self.save(trace(lambda x: (x + 1, None), torch.zeros(2)), outputs=["loss", {"role": "gradient", "of": "x_1"}])
        items = self.main["nodes"][-1]["args"][0]["tuple"]["items"]
        self.assertEqual(items[1], {"none": True})
        gradient = {"role": "OUTPUT_ROLE_GRADIENT", "of": "x_1"}
        self.assertEqual(self.main["outputs"], [{"role": "OUTPUT_ROLE_LOSS"}, gradient])

    def test_small_constants_are_inline_and_large_ones_beside_the_file(self):
        graph_module = torch.fx.symbolic_trace(torch.nn.Identity())
        graph_module.small = torch.tensor([1, 2], dtype=torch.int16)
        graph_module.large = torch.zeros(300)
        graph = torch.fx.Graph()
        graph.output((graph.get_attr("small"), graph.get_attr("large")))
        graph_module.graph = graph
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.json"
            try:
                bridge.save(graph_module, path)
            except bridge.ExportError as error:
                self.assertIn("need the package safetensors", str(error))
                self.skipTest("the package safetensors is missing")
            from safetensors.torch import load_file

            stored = load_file(path.with_name("step.safetensors"))
            module = bridge.read_module(path)
        small, large = module["constants"]
        self.assertEqual(small["inline_data"], "AQACAA==")
        self.assertEqual((large["path"], large["key"]), ("step.safetensors", "main.large"))
        self.assertEqual(stored["main.large"].shape, (300,))

    def test_custom_ops_bring_their_schema(self):
        library = torch.library.Library("fxopt_test", "DEF")
        library.define("twice_(Tensor(a!) x) -> Tensor(a!)")
        library.impl("twice_", lambda x: x.mul_(2), "CompositeExplicitAutograd")
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(torch.ops.fxopt_test.twice_.default, (x,)))
        module = self.save(torch.fx.GraphModule(torch.nn.Module(), graph))
        (schema,) = module["op_schemas"]
        self.assertEqual(schema["target"], "fxopt_test.twice_.default")
        self.assertEqual(schema["schema"], "fxopt_test::twice_(Tensor(a!) x) -> Tensor(a!)")
        self.assertTrue(schema["is_mutable"])

    # ---- metadata

    @needs_marks
    def test_annotations_become_fields(self):
        def function(x, w):
            with torch.fx.traceback.annotate({"module_fqn": "layers.3.wq"}):
                y = x @ w
            with torch.fx.traceback.annotate({"module_fqn": "loss", "ac_region_id": 7}):
                loss = y.sum()
            return loss, torch.autograd.grad(loss, w)[0]

        self.save(annotated(function, torch.ones(2, 3), torch.ones(3, 4, requires_grad=True)))
        self.assertEqual(self.main["kind"], "GRAPH_KIND_FORWARD_LOSS_BACKWARD")
        product = self.nodes["mm"]
        self.assertEqual(product["module_path"], "layers.3.wq")
        self.assertNotIn("custom", self.meta("mm"))
        self.assertNotIn("phase", product)
        loss = self.nodes["sum_1"]
        self.assertEqual((loss["module_path"], loss["region"]), ("loss", {"id": 7}))
        self.assertEqual(len(self.meta("sum_1")["custom"]["dict"]["items"]), 2)
        backward = self.nodes["mm_1"]
        self.assertEqual(backward["phase"], "PHASE_BACKWARD")
        self.assertEqual(backward["phase_markers"], ["PHASE_MARKER_AUTOGRAD_BACKWARD"])
        self.assertEqual(backward["seq_nr"], product["seq_nr"])

    def test_tags_and_regions(self):
        graph_module = trace(lambda x: x.sin().cos(), torch.zeros(2))
        policy = torch.utils.checkpoint.CheckpointPolicy
        sin, cos = (node for node in graph_module.graph.nodes if node.op == "call_function")
        sin.meta |= {"recompute": policy.PREFER_RECOMPUTE, "ac_graph_id": None, "has_backward_hook": True}
        cos.meta |= {"recompute": policy.MUST_CPU_OFFLOAD, "ac_graph_id": 4, "partitioner_tag": "must_be_in_backward"}
        self.save(graph_module)
        self.assertEqual(self.nodes["sin"]["tag"], "TAG_PREFER_RECOMPUTE")
        self.assertEqual(self.nodes["sin"]["region"], {"id_is_none": True, "has_backward_hook": True})
        self.assertEqual(self.nodes["cos"]["tag"], "TAG_MUST_OFFLOAD")
        self.assertEqual(self.nodes["cos"]["region"], {"id": 4})
        self.assertEqual(self.nodes["cos"]["phase_markers"], ["PHASE_MARKER_MUST_BE_IN_BACKWARD"])
        self.assertEqual(self.meta("cos"), {})

    def test_other_metadata_is_a_typed_tree(self):
        graph_module = trace(lambda x: x + 1, torch.zeros(2))
        x, add = list(graph_module.graph.nodes)[:2]
        add.meta["mine"] = {
            "colour": Colour.RED,
            1: (True, None, 2.5, torch.float16),
            "set": {"b", "a"},
            "size": torch.Size([2, 3]),
            "node": x,
            "op": torch.ops.aten.mm.default,
        }
        self.save(graph_module)
        items = self.meta("add")["mine"]["dict"]["items"]
        tree = {json.dumps(item["key"]): item["value"] for item in items}
        colour = tree['{"string": "colour"}']["enum_value"]
        self.assertEqual((colour["name"], colour["number"]), ("RED", 3))
        half = {"float_bits": "0x4004000000000000"}
        parts = [{"bool_value": True}, {"none": True}, half, {"dtype": "DTYPE_FLOAT16"}]
        self.assertEqual(tree['{"int_value": 1}'], {"tuple": {"items": parts}})
        self.assertEqual(tree['{"string": "set"}'], {"set": {"items": [{"string": "a"}, {"string": "b"}]}})
        self.assertEqual(tree['{"string": "size"}']["tuple"]["type"], "torch.Size")
        self.assertEqual(tree['{"string": "node"}'], {"uid_ref": 0})
        self.assertEqual(tree['{"string": "op"}'], {"op": "aten.mm.default"})

    def test_metadata_without_a_typed_form_is_an_error_unless_dropped(self):
        graph_module = trace(lambda x: x + 1, torch.zeros(2))
        add = list(graph_module.graph.nodes)[1]
        add.meta["planted"] = {"inside": object()}
        message = r"node %add: metadata 'planted': an object of type object has no typed form; save\(..., drop="
        with self.assertRaisesRegex(bridge.ExportError, message):
            self.save(graph_module)
        self.save(graph_module, drop=["planted"])
        self.assertNotIn("planted", self.meta("add"))

    def test_a_stack_gives_the_source_of_its_last_frame(self):
        graph_module = trace(lambda x: x + 1, torch.zeros(2))
        frames = ('"a.py", line 3, in outer\n    y = f(x)', '"/opt/lib/site-packages/b.py", line 5, in f\n    x + 1')
        stack = "".join(f"  File {frame}\n" for frame in frames)
        list(graph_module.graph.nodes)[1].meta["stack_trace"] = stack
        self.save(graph_module)
        source = {"file": "/opt/lib/site-packages/b.py", "line": 5, "function": "f", "code": "x + 1"}
        self.assertEqual(self.nodes["add"]["source"], source)
        self.assertEqual(self.meta("add")["stack_trace"], {"string": stack})
        self.save(graph_module, short_paths=True)
        self.assertEqual(self.nodes["add"]["source"]["file"], "site-packages/b.py")

    # ---- calling convention

    def test_descriptors_give_the_roles_of_a_joint_graph(self):
        from contextlib import ExitStack

        from torch._functorch.aot_autograd import aot_export_joint_with_descriptors

        with ExitStack() as stack:
            model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
            joint = aot_export_joint_with_descriptors(stack, model, (torch.zeros(4, 3),)).graph_module
            self.save(joint)
        self.assertEqual(self.main["kind"], "GRAPH_KIND_JOINT")
        inputs = [node["input"] for node in self.main["nodes"] if "input" in node]
        self.assertEqual(inputs[0]["role"], "INPUT_ROLE_PARAMETER")
        self.assertEqual(inputs[0]["fqn"], "0.weight")
        roles = {spec["role"] for spec in inputs}
        self.assertEqual(roles, {f"INPUT_ROLE_{role}" for role in ("PARAMETER", "BUFFER", "INPUT", "TANGENT")})
        outputs = self.main["outputs"]
        gradient = next(spec for spec in outputs if spec.get("fqn") == "0.weight")
        self.assertEqual((gradient["role"], gradient["of"]), ("OUTPUT_ROLE_GRADIENT", "primals_1"))
        forward = outputs[: self.main["num_forward_outputs"]]
        self.assertEqual([spec["role"] for spec in forward], ["OUTPUT_ROLE_MUTATION"] * 3 + ["OUTPUT_ROLE_USER"])

    def test_roles_are_told_by_order_or_by_name(self):
        graph_module = trace(lambda x, w: x @ w, torch.zeros(2, 2), torch.zeros(2, 2))
        by_order = self.save(graph_module, roles=["input", {"role": "parameter", "fqn": "w"}])
        by_name = self.save(graph_module, roles={"x_1": "input", "w_1": {"role": "parameter", "fqn": "w"}})
        self.assertEqual(by_order, by_name)
        self.assertEqual(self.nodes["w_1"]["input"], {"role": "INPUT_ROLE_PARAMETER", "fqn": "w"})

    # ---- failures

    def test_what_cannot_be_written_is_an_error_that_names_the_node(self):
        graph = torch.fx.Graph()
        graph.call_function(torch.ops.aten.add.Tensor, (graph.placeholder("x"), range(3)), name="bad")
        graph.output(None)
        message = r"node %bad \(aten.add.Tensor\): argument 'other': an argument of type range cannot be written"
        with self.assertRaisesRegex(bridge.ExportError, message):
            self.save(torch.fx.GraphModule(torch.nn.Module(), graph))

    def test_a_recompute_value_that_is_no_tag_is_an_error(self):
        graph_module = trace(lambda x: x.sin(), torch.zeros(2))
        (sin,) = (node for node in graph_module.graph.nodes if node.op == "call_function")
        for value, text in ((True, "True of type bool"), (1, "1 of type int"), ("MUST_SAVE", "'MUST_SAVE' of type str")):
            sin.meta["recompute"] = value
            with self.subTest(value=value), self.assertRaisesRegex(bridge.ExportError, rf"node %sin.*'recompute' is {text}"):
                self.save(graph_module)

    def test_tags_and_marks_are_counted_and_told(self):
        graph_module = trace(lambda x: torch.topk(x.sin().cos(), 1)[0], torch.zeros(2))
        policy = torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE
        marked = {"custom": {"ap_must_save": True}}
        for node in graph_module.graph.nodes:
            told = {"sin": {"recompute": policy}, "cos": marked, "topk": {"custom": {"ap_must_save": True, "ap_must_save_getitem_indices": [0, 1]}}}
            node.meta |= told.get(node.name, {})
        with tempfile.TemporaryDirectory() as folder, self.assertLogs("fxopt", "INFO") as logs:
            written = bridge.save(graph_module, pathlib.Path(folder) / "counted.json")
        self.assertEqual((written.tags, written.marks), (1, 3))
        self.assertTrue(logs.output[-1].endswith("saw 1 tag, 3 marks (ap_must_save)"), logs.output)

    def test_wrong_roles_are_errors(self):
        graph_module = trace(lambda x: x + 1, torch.zeros(2))
        for told, message in (
            ({"roles": ["input", "input"]}, "2 roles for 1 placeholders"),
            ({"roles": {"y": "input"}}, "'y', which is not a placeholder"),
            ({"roles": ["weight"]}, "unknown role 'weight'"),
            ({"outputs": []}, "0 output roles for 1 outputs"),
            ({"kind": "step"}, "unknown graph kind 'step'"),
        ):
            with self.subTest(told=told), self.assertRaisesRegex(bridge.ExportError, message):
                self.save(graph_module, **told)

    def test_a_missing_program_is_said(self):
        graph_module = trace(lambda x: x + 1, torch.zeros(2))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "graph.pb"
            with self.assertRaisesRegex(RuntimeError, "no fxopt program"):
                bridge.save(graph_module, path, fxopt="/no/such/program")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_two_saves_are_equal(self):
        graph_module = trace(lambda x: x.view(-1)[::2] * 2, torch.zeros(4, 6), mode="symbolic")
        self.assertEqual(self.save(graph_module), self.save(graph_module))


class GpuFree(unittest.TestCase):
    @needs_marks
    def test_a_cuda_step_is_traced_with_backward_marked_and_annotated(self):
        mode = trace_gpu_free.fake_mode()
        with mode, torch.device("cuda"):
            model = torch.nn.Sequential(torch.nn.ModuleList([torch.nn.Linear(3, 3)]))
            model.forward = lambda x: model[0][0](x)
            x = torch.empty(2, 3)
        trace_gpu_free.annotate_modules(model, "0")
        (weight, bias) = model.parameters()

        def step(x, weight, bias):
            with torch.nn.utils.stateless._reparametrize_module(model, {"0.0.weight": weight, "0.0.bias": bias}):
                loss = model(x).sum()
            return [loss, *torch.autograd.grad(loss, [weight, bias])]

        graph_module = trace_gpu_free.trace_step(step, mode, [x, weight, bias])
        products = [node for node in graph_module.graph.nodes if "mm" in str(node.target)]
        self.assertEqual([node.meta.get("autograd_backward", False) for node in products], [False, True])
        for node in products:
            self.assertEqual(node.meta["custom"], {"module_fqn": "0.0", "ac_region_id": 0})
            self.assertEqual(node.meta["val"].device.type, "cuda")


class Command(unittest.TestCase):
    def test_save_writes_what_a_function_returns(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "made.py"
            program.write_text(
                "import torch\n"
                "from torch.fx.experimental.proxy_tensor import make_fx\n"
                "def graph():\n"
                "    return make_fx(lambda x: x + 1)(torch.zeros(2)), {'roles': ['input']}\n"
            )
            output = pathlib.Path(folder) / "graph.json"
            status = bridge.main(["save", f"{program}:graph", "-o", str(output), "--kind", "inference"])
            self.assertEqual(status, 0)
            main = json.loads(output.read_text())["module"]["graphs"][0]
        self.assertEqual(main["kind"], "GRAPH_KIND_INFERENCE")
        self.assertEqual(main["nodes"][0]["input"], {"role": "INPUT_ROLE_INPUT"})


if __name__ == "__main__":
    unittest.main()
