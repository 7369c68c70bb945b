"""Calls of Triton kernels in files: a kernel is found by its source in any process, and another
kernel is never taken for it. Nothing is launched. Skipped without torch, Triton or the fxopt
program."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import unittest

from fxopt_program import Fxopt
from setting import SCRIPTS, imports_torch, need_program

with imports_torch():
    import torch
    import triton
    from fxopt import bridge, triton_kernels
    from small_graphs import Case
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.library import wrap_triton
    from triton import language as tl
need_program()

SOURCE = """
import triton
from triton import language as tl

@triton.jit
def {name}(x, o, n, B: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n).to(D) {change}, mask=i < n)
"""


@triton.autotune(configs=[triton.Config({"B": 32}), triton.Config({"B": 64}, num_warps=8)], key=["n"])
@triton.jit
def tuned(x, o, n, B: tl.constexpr, F: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)


def scaling(by):
    @triton.jit
    def scale(x, o, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(o + i, tl.load(x + i, mask=i < n) * by, mask=i < n)

    return scale


def with_default(size):
    @triton.jit
    def add(x, o, n, B: tl.constexpr = size):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)

    return add


def tuned_again(**options):
    return triton.autotune(configs=[triton.Config({"B": 32})], key=["n"], **options)(with_default(8))


def trace(*kernels, **constants):
    def step(x):
        outputs = [torch.empty_like(x) for _ in kernels]
        for kernel, output in zip(kernels, outputs, strict=True):
            wrap_triton(kernel)[(2,)](x, output, 64, **constants)
        return outputs

    return make_fx(step, tracing_mode="fake")(torch.randn(64))


def calls(graph_module):
    return [node for node in graph_module.graph.nodes if "triton" in str(node.target)]


def described(graph_module):
    """Name and source of each kernel, with its constants."""
    result = []
    for call in calls(graph_module):
        kernel = kernel_side_table.get_kernel(call.kwargs["kernel_idx"])
        result.append((kernel, kernel_side_table.get_constant_args(call.kwargs["constant_args_idx"])))
    return result


class Triton(Case):
    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        self.addCleanup(sys.modules.pop, "shop", None)
        self.file = self.folder / "step.pb"

    def write(self, name="plus", change="+ 1"):
        (self.folder / "shop.py").write_text(SOURCE.format(name=name, change=change))

    def save(self, *kernels, **constants):
        graph_module = trace(*kernels, **constants)
        bridge.save(graph_module, self.file)
        return graph_module

    def load_elsewhere(self):
        """The kernel's name in a process whose first kernel is another one."""
        program = f"""
            import sys
            sys.path[:0] = [{str(SCRIPTS)!r}, {str(self.folder)!r}]
            import triton
            from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
            from fxopt import bridge
            @triton.jit
            def other(x):
                pass
            kernel_side_table.add_kernel(other)
            kernel_side_table.add_constant_args({{"B": 1}})
            (call,) = [n for n in bridge.load({str(self.file)!r}).graph.nodes if "triton" in str(n.target)]
            print(kernel_side_table.get_kernel(call.kwargs["kernel_idx"]).fn.__name__)
            print(kernel_side_table.get_constant_args(call.kwargs["constant_args_idx"]))
        """
        script = self.folder / "load.py"
        script.write_text(textwrap.dedent(program))
        return subprocess.run([sys.executable, str(script)], capture_output=True, text=True)

    def test_another_process_finds_the_kernel(self):
        self.write()
        import shop

        self.save(shop.plus, B=64, D=tl.float16)
        self.assertEqual(self.load_elsewhere().stdout.split("\n")[:2], ["plus", "{'D': triton.language.float16}"])

    def test_another_source_is_an_error(self):
        self.write()
        import shop

        self.save(shop.plus, B=64, D=tl.float16)
        for name, change, words in (("plus", "- 1", "is another one than in the file"), ("minus", "+ 1", "no import finds")):
            self.write(name, change)
            self.assertIn(words, self.load_elsewhere().stderr)

    def test_a_tuned_kernel_and_its_constants(self):
        before = self.save(tuned, F=True)
        self.assertEqual(described(bridge.load(self.file)), described(before))
        with_one = trace(tuned, F=1)  # 1 == True, but not as a constant
        bridge.save(with_one, self.file)
        constants = described(bridge.load(self.file))[0][1]
        self.assertEqual(str(constants), str(described(with_one)[0][1]))

    def test_other_kernels_and_constants_differ(self):
        self.write()
        import shop

        files = [self.folder / f"{number}.pb" for number in range(3)]
        for file, graph_module in zip(
            files,
            (trace(shop.plus, B=64, D=tl.float16), trace(shop.plus, B=64, D=tl.float16), trace(shop.plus, B=64, D=tl.float32)),
            strict=True,
        ):
            bridge.save(graph_module, file)
        (row,) = Fxopt(None).run("verify", str(files[1]), "--against", str(files[0]))["files"]
        self.assertEqual(row["proof"], "proved")
        with self.assertRaisesRegex(RuntimeError, "results differ"):
            Fxopt(None).run("verify", str(files[2]), "--against", str(files[0]))

    def test_passes_keep_the_kernels(self):
        before = self.save(tuned, F=True)
        again = bridge.apply(bridge.load(self.file), "canonicalize,cse,dce")
        self.assertEqual(described(again), described(before))

    def test_kernels_with_other_enclosing_values_differ(self):
        self.save(scaling(2), scaling(3), scaling(3), B=32)
        numbers = [call.kwargs["kernel_idx"] for call in calls(bridge.load(self.file))]
        self.assertNotEqual(numbers[0], numbers[1])
        self.assertEqual(numbers[1], numbers[2])  # the same kernel twice

    def test_defaults_and_what_tuning_resets_are_parts_of_a_kernel(self):
        self.save(with_default(32), with_default(64), tuned_again(), tuned_again(reset_to_zero=["o"]), tuned_again())
        numbers = [call.kwargs["kernel_idx"] for call in calls(bridge.load(self.file))]
        self.assertNotEqual(numbers[0], numbers[1])
        self.assertNotEqual(numbers[2], numbers[3])

    def test_options_of_a_launch_are_found_in_another_process(self):
        self.write()
        import shop

        self.save(shop.plus, B=64, D=tl.float16, num_warps=8)
        self.assertEqual(self.load_elsewhere().stdout.split("\n")[0], "plus")

    def test_a_comment_above_a_kernel_changes_nothing(self):
        self.write()
        import shop

        self.save(shop.plus, B=64, D=tl.float16)
        (self.folder / "shop.py").write_text("# more\n" + (self.folder / "shop.py").read_text())
        self.assertEqual(self.load_elsewhere().stdout.split("\n")[0], "plus")

    def test_what_no_text_stands_for_is_loaded_by_this_process_alone(self):
        (self.folder / "sizes.py").write_text("from triton.language import constexpr\nBY = constexpr(2)\n")
        self.write("times", "* sizes.BY")
        (self.folder / "shop.py").write_text("import sizes\n" + (self.folder / "shop.py").read_text())
        import shop

        graph_module = self.save(shop.times, B=32, D=tl.float16)
        self.assertEqual(described(bridge.load(self.file)), described(graph_module))
        self.assertIn("it reads the module sizes", self.load_elsewhere().stderr)
        number = kernel_side_table.add_constant_args({"D": object()})
        text = triton_kernels.text_of("constant_args_idx", number)
        self.assertIn("D is a object", text)
        self.assertEqual(triton_kernels.number_of("constant_args_idx", text), number)


if __name__ == "__main__":
    unittest.main()
