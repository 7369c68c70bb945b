"""Tests of torchtitan that need no GPU, moved out of a class that requires two."""

from __future__ import annotations

from torch.testing._internal.common_utils import TestCase
from torchtitan.experiments.graph_trainer.tests import test_passes


class TestMoved(TestCase):
    """Dead-code elimination of assertions, from TestBucketingPrefetchOrder."""

    test_drops_assert_async_and_dead_chain = (
        test_passes.TestBucketingPrefetchOrder.test_drops_assert_async_and_dead_chain
    )
