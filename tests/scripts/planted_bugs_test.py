"""scripts/peers/planted_bugs.py: every mistake still has exactly one place in the sources. Needs
neither torch nor a build."""

from __future__ import annotations

import unittest

import planted_bugs
from planted_bugs import ALL
from setting import ROOT


class Places(unittest.TestCase):
    def test_every_mistake_fits_the_sources(self):
        edits = [(number, edit) for number, planted in enumerate(ALL, 1) for edit in planted.edits]
        numbers = set()
        for file in sorted({edit.file for _, edit in edits}):
            with self.subTest(file=file):
                here = [(number, edit) for number, edit in edits if edit.file == file]
                text = planted_bugs.plant((ROOT / file).read_text(encoding="utf-8"), here)
                for number, edit in here:
                    self.assertIn(f"is_planted({number}) ? ({edit.instead}) : (", text)
                    numbers.add(number)
        self.assertEqual(numbers, set(range(1, len(ALL) + 1)))

    def test_names_and_rules_differ(self):
        for texts in ([planted.name for planted in ALL], [planted.rule for planted in ALL]):
            self.assertEqual(len(texts), len(set(texts)))

    def test_a_place_that_is_not_there_or_not_alone_is_refused(self):
        known = ALL[0].edits[0]
        for text in ("int a = 0;", 2 * "Effect allowed = Effect::kHostSync | Effect::kNondeterministic;\n"):
            with self.assertRaisesRegex(ValueError, "places, not one"):
                planted_bugs.plant(text, [(1, known)])


if __name__ == "__main__":
    unittest.main()
