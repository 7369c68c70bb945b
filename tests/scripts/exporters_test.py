"""The parts of the exporters that need no torch: expressions, known metadata, descriptors, dumps."""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
import unittest

import dumps_to_fxopt
import setting  # noqa: F401
from fxopt import form, training


class Expressions(unittest.TestCase):
    def test_framework_text_becomes_the_grammar(self):
        for text, expected in {
            "4096*u0 + u1": "4096 * u0 + u1",
            "((s75*s96 + 1)//2)": "(s75 * s96 + 1) // 2",
            "-s0**2": "-s0 ** 2",
            "(-s0)**2": "(-s0) ** 2",
            "s0 - (s1 - 2)": "s0 - (s1 - 2)",
            "s0*(s1//2)": "s0 * (s1 // 2)",
            "FloorDiv(s0 + 1, 2)*3": "(s0 + 1) // 2 * 3",
            "PythonMod(u0, 3)": "u0 % 3",
            "Mod(s0, 2)": "Mod(s0, 2)",
            "Eq(Mod(s0, 2), 0)": "Mod(s0, 2) == 0",
            "Max(1, s0)": "Max(1, s0)",
            "(s0 > 1) & (s1 < 2)": "And(s0 > 1, s1 < 2)",
            "~(u0 < 3)": "Not(u0 < 3)",
            "2 < s0 < 5": "And(2 < s0, s0 < 5)",
            "True": "0 == 0",
            "False": "0 == 1",
            "4*Piecewise((s0, s0 > s1), (2, Eq(s1, 3)), (s1, True))": "4 * Where(s0 > s1, s0, Where(s1 == 3, 2, s1))",
        }.items():
            self.assertEqual(form.expression(text), expected)
            self.assertEqual(form.expression(expected), expected)

    def test_what_the_grammar_cannot_say_is_an_error(self):
        for text in ("", "s0 +", "Piecewise((s0, s0 > 1))", "L['x']", "f(x=1)", "a if b else c", "[s0]", "s0; s1"):
            with self.subTest(text=text), self.assertRaises(form.FormError):
                form.expression(text)

    def test_floats_are_written_as_the_program_prints_them(self):
        for given, expected in (
            ("1.50000000000000", "1.5"),
            ("100.0", "100.0"),
            ("123456.0", "123456.0"),
            ("100000.0", "1e+05"),
            ("0.001", "0.001"),
            ("0.0001", "1e-04"),
            ("0.3333333333333333", "0.3333333333333333"),
            ("1.5e300", "1.5e+300"),
        ):
            with self.subTest(given):
                self.assertEqual(form.expression(f"{given}*s0"), f"{expected} * s0")

    def test_symbols_come_in_order_of_appearance_without_functions(self):
        self.assertEqual(form.symbols_of("Max(u1, s0) + u1 // 2"), ["u1", "s0"])


class Arguments(unittest.TestCase):
    def test_python_values(self):
        self.assertEqual(form.plain([1, 2]), {"ints": {"values": [1, 2]}})
        self.assertEqual(form.plain((1, 2)), {"int_tuple": {"values": [1, 2]}})
        self.assertEqual(form.plain([True, 2]), {"list": {"items": [{"bool_value": True}, {"int_value": 2}]}})
        self.assertEqual(form.plain([]), {"list": {}})
        self.assertEqual(form.plain(-0.0), {"float_bits": "0x8000000000000000"})
        self.assertEqual(form.plain(2**53), {"int_value": "9007199254740992"})
        self.assertEqual(form.plain(""), {"string": ""})
        with self.assertRaises(form.FormError):
            form.plain(2**64)

    def test_leaves_of_an_output(self):
        arg = {"tuple": {"items": [{"node": "a"}, {"list": {"items": [{"none": True}]}}, {"tuple": {}}]}}
        self.assertEqual(form.leaves(arg), [{"node": "a"}, {"none": True}])


class Metadata(unittest.TestCase):
    def test_only_a_bare_module_path_replaces_custom(self):
        fields, consumed = training.training_fields({"custom": {"module_fqn": "layers.0"}})
        self.assertEqual((fields, consumed), ({"module_path": "layers.0"}, {"custom"}))
        fields, consumed = training.training_fields({"custom": {"EP": "x", "module_fqn": "layers.0"}})
        self.assertEqual((fields, consumed), ({"module_path": "layers.0"}, set()))

    def test_a_backward_marker_outweighs_a_forward_one(self):
        meta = {"autograd_backward": True, "partitioner_tag": "is_forward"}
        self.assertEqual(training.training_fields(meta)[0]["phase"], "PHASE_BACKWARD")
        self.assertEqual(training.training_fields({"partitioner_tag": "is_forward"})[0]["phase"], "PHASE_FORWARD")

    def test_a_value_of_another_type_stays_metadata(self):
        meta = {"recompute": 3, "seq_nr": "7", "autograd_backward": False, "ac_graph_id": "1", "custom": "x"}
        self.assertEqual(training.training_fields(meta), ({}, set()))

    def test_descriptors(self):
        base = "SubclassGetAttrAOTInput(base=ParamAOTInput(target='a.b'), attr='_local_tensor')"
        expected = {"role": "INPUT_ROLE_PARAMETER", "fqn": "a.b", "subclass_path": ["_local_tensor"], "desc": base}
        self.assertEqual(training.input_spec(base), expected)
        of = "GradAOTOutput(grad_of=ParamAOTInput(target='a.b'))"
        gradient = f"SubclassGetAttrAOTOutput(base={of}, attr='_local_tensor')"
        spec = training.output_spec(gradient, {base: "primals_1"})
        self.assertEqual((spec["role"], spec["of"], spec["fqn"]), ("OUTPUT_ROLE_GRADIENT", "primals_1", "a.b"))
        self.assertEqual(training.input_spec("Other(1"), {"desc": "Other(1"})

    def test_paths_lose_what_names_a_machine(self):
        text = 'File "/opt/x y/lib/python3.11/site-packages/torch/a.py", line 1'
        self.assertNotIn("/opt", form.shorten_paths(text.replace(" y", "")))
        self.assertEqual(form.shorten_paths("/usr/lib/python3.11/runpy.py"), "python3.11/runpy.py")


def tensor(storage, shape=(2,)):
    layout = {"shape": list(shape), "stride": [1] * len(shape), "offset": 0, "storage": storage}
    return layout | {"dtype": "float32", "device": "cpu"}


def dump():
    """A step: loss and the gradient of one of two tied weights; a subgraph; a size that is known late."""
    def node(op, name, target=None, args=(), **meta):
        return {"name": name, "op": op, "target": target or name, "args": list(args), "meta": meta}

    late = tensor(3, shape=({"sym": "2*u0"},))
    nodes = [
        node("placeholder", "w", val=tensor(0), seq_nr=-1),
        node("placeholder", "tied", val=tensor(0)),
        node("placeholder", "cache", val=tensor(1, shape=(3,))),
        node("placeholder", "x", val=tensor(2)),
        node("get_attr", "body", "body_0"),
        node("call_function", "item", "aten.item.default", [{"n": "x"}], val={"sym": "u0", "type": "SymInt"},
             unbacked_bindings="{u0: ()}"),
        node("call_function", "late", "aten.repeat.default", [{"n": "w"}, [{"n": "item"}]], val=late,
             original_aten="aten.repeat.default", recompute="MUST_SAVE", ac_graph_id=None),
        node("call_function", "loss", "higher_order.call", [{"n": "body"}, {"tuple": [1, {"dtype": "bfloat16"}]}],
             val=tensor(4, shape=()), custom={"module_fqn": "loss"}),
        node("call_function", "g", "aten.neg.default", [{"n": "w"}], val=tensor(5), autograd_backward=True),
        node("output", "output", args=[[{"n": "loss"}, {"n": "g"}]]),
    ]
    body = {"nodes": [node("placeholder", "a"), node("output", "output", args=[{"n": "a"}])], "subgraphs": {},
            "tensor_constants": {}}
    roles = {"w": {"fqn": "w"}, "tied": {"fqn": "t"}, "cache": {"fqn": "c"}, "x": {"role": "input"}}
    return {
        "format": "fxdump/1", "name": "tiny", "torch": "2.15.0", "roles": roles,
        "info": {"kind": "flb", "recipe": "tiny.py"},
        "graph": {"nodes": nodes, "subgraphs": {"body_0": body}, "tensor_constants": {}},
        "schemas": {"aten.neg.default": {"schema": "aten::neg(Tensor self) -> Tensor", "tags": [], "mutable": False}},
        "meta_keys": {}, "storages": {"0": 8, "1": 12, "2": 8, "3": {"sym": "8*u0"}, "4": 4, "5": 8},
        "process_groups": {"0": {"ranks": [1, 0], "desc": "default_pg", "backend": "fake"}},
    }


class Dumps(unittest.TestCase):
    def setUp(self):
        self.module = dumps_to_fxopt.DumpConverter(dump()).module()
        self.nodes = {node["name"]: node for node in self.module["graphs"][0]["nodes"]}

    def test_graphs_uids_and_counters(self):
        names = [(g["name"], g["kind"], g.get("owner")) for g in self.module["graphs"]]
        subgraph = ("main.body_0", "GRAPH_KIND_SUBGRAPH", "main")
        self.assertEqual(names, [("main", "GRAPH_KIND_FORWARD_LOSS_BACKWARD", None), subgraph])
        self.assertEqual(self.module["graphs"][0]["attributes"], [{"path": "body_0", "graph": "main.body_0"}])
        uids = [node["uid"] for graph in self.module["graphs"] for node in graph["nodes"]]
        self.assertEqual(uids, list(range(12)))
        self.assertEqual(self.module["counters"], {"next_uid": 12, "next_storage": 6})

    def test_roles_are_told_or_follow_from_the_gradients(self):
        roles = [(n["input"].get("role"), n["input"].get("guessed")) for n in list(self.nodes.values())[:4]]
        parameter = ("INPUT_ROLE_PARAMETER", True)
        self.assertEqual(roles, [parameter, parameter, ("INPUT_ROLE_BUFFER", True), ("INPUT_ROLE_INPUT", None)])
        loss, gradient = self.module["graphs"][0]["outputs"]
        self.assertEqual(loss, {"role": "OUTPUT_ROLE_LOSS", "guessed": True})
        self.assertEqual((gradient["role"], gradient["of"]), ("OUTPUT_ROLE_GRADIENT", "w"))

    def test_roles_that_do_not_fit_are_not_written(self):
        source = dump()
        source["graph"]["nodes"][0]["meta"]["val"] = tensor(0, shape=(7,))
        main = dumps_to_fxopt.DumpConverter(source).module()["graphs"][0]
        self.assertNotIn("outputs", main)
        self.assertNotIn("role", main["nodes"][0]["input"])

    def test_symbols_and_storages(self):
        symbol = {"name": "u0", "kind": "SYMBOL_KIND_UNBACKED", "graph": "main", "node": "item"}
        self.assertEqual(self.module["symbols"], [symbol])
        self.assertEqual(self.nodes["late"]["value"]["tensor"]["symbolic_sizes"], [{"index": 0, "expr": "2 * u0"}])
        self.assertEqual(self.module["storages"][3], {"id": 3, "bytes": {"expr": "8 * u0"}, "device": "cpu"})
        key = {"dict": {"items": [{"key": {"expr": "u0"}, "value": {"tuple": {}}}]}}
        self.assertEqual(self.nodes["item"]["meta"], [{"key": "unbacked_bindings", "value": key}])

    def test_fields_and_metadata(self):
        late = self.nodes["late"]
        self.assertEqual((late["tag"], late["region"]), ("TAG_MUST_SAVE", {"id_is_none": True}))
        self.assertEqual(late["meta"], [{"key": "original_aten", "value": {"op": "aten.repeat.default"}}])
        self.assertEqual(self.nodes["loss"]["module_path"], "loss")
        self.assertEqual(self.nodes["g"]["phase_markers"], ["PHASE_MARKER_AUTOGRAD_BACKWARD"])
        self.assertEqual(self.module["groups"][0]["ranks"], [1, 0])

    def test_the_command_writes_json_where_there_is_no_program(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "tiny.json.gz"
            source.write_bytes(gzip.compress(json.dumps(dump()).encode()))
            bad = pathlib.Path(folder) / "bad.json.gz"
            bad.write_bytes(b"not gzip")
            arguments = [str(bad), str(source), "-o", folder + "/out", "--form", "json"]
            self.assertEqual(dumps_to_fxopt.main(arguments), 1)
            written = json.loads((pathlib.Path(folder) / "out" / "tiny.json").read_text())
            self.assertEqual(written, {"version": 0, "module": self.module})


if __name__ == "__main__":
    unittest.main()
