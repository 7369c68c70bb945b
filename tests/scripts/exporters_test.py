"""The parts of the exporter that need no torch: expressions, known metadata, descriptors."""

from __future__ import annotations

import unittest

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


if __name__ == "__main__":
    unittest.main()
