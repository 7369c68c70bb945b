"""Memory reports against their JSON schema. Needs the program and jsonschema (Debian:
python3-jsonschema), but not torch."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import tempfile
import unittest

from fxopt_program import Fxopt
from setting import ROOT, TESTDATA, needs_program

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = ROOT / "schemas" / "memory_report.schema.json"
GRAPH = str(TESTDATA / "llama1b.pb")


@unittest.skipIf(jsonschema is None, "no jsonschema: install python3-jsonschema")
@needs_program
class ReportSchema(unittest.TestCase):
    def setUp(self) -> None:
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        validator = jsonschema.validators.validator_for(schema)
        validator.check_schema(schema)
        self.validator = validator(schema)

    def report(self, *options: str) -> dict:
        return Fxopt(None).run("mem", *options)

    def test_the_result_of_the_envelope(self) -> None:
        twin = str(TESTDATA / "gpt2_flb_twin.pb.zst")
        unknown = str(TESTDATA / "deepseek16b_twin.pb.zst")
        recorded = ("--comm-lifetime", "record_stream")
        some = (("--steady", "--device", "h100"), ("--device-memory", "1GiB"), ("--top", "0"), recorded, (twin, unknown))
        for options in ((), *some):
            with self.subTest(options=options):
                self.validator.validate(self.report(GRAPH, *options))

    def test_a_step_of_several_graphs(self) -> None:
        report = self.report("--step", *(str(TESTDATA / f"pair_{part}.pb.zst") for part in ("forward", "backward")))
        self.validator.validate(report)
        self.assertEqual([run["label"] for run in report["files"][0]["graphs"][0]["step"]], ["forward", "backward"])

    def test_a_baseline(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "base.json")
            self.report(GRAPH, "--baseline", path, "--update-baseline")
            self.validator.validate(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))

    def test_what_is_missing_or_too_much_is_refused(self) -> None:
        good = self.report(GRAPH)

        def refuse(change) -> None:
            bad = copy.deepcopy(good)
            change(bad["files"][0]["graphs"][0]["devices"][0])
            self.assertFalse(self.validator.is_valid(bad))

        refuse(lambda device: device.pop("ideal"))
        refuse(lambda device: device.update(surprise=1))
        refuse(lambda device: device["top"][0].update(bytes=1.5))
        refuse(lambda device: device["top"][0].update({"class": "cache"}))


if __name__ == "__main__":
    unittest.main()
