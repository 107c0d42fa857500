"""Where rows are cut into shards."""

from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st
from pool_jobs import lose_half

from askew.core.store.steps import run_step
from askew.core.store.store import Store

# Each example has a store of its own, in memory: a disk that is flushed after every part is slow.
NUMBER = count()


class Grouped:
    """Twenty-odd rows of groups of uneven size, in batches that do not fit them."""

    key = "grouped"

    def __init__(self, sizes, batch):
        groups = [group for group, size in enumerate(sizes) for _ in range(size)]
        self.table, self.batch = pa.table({"group": groups, "n": list(range(len(groups)))}), batch

    def batches(self):
        for start in range(0, self.table.num_rows, self.batch):
            yield self.table.slice(start, self.batch)


class CountsGroups:
    name, version, together = "counts", 1, "group"

    def settings(self):
        return {}

    def run(self, rows):
        counts = pc.value_counts(rows["group"])
        table = pa.table({"group": counts.field("values"), "size": counts.field("counts")})
        return table, {"counted": rows.num_rows - table.num_rows}


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    batch=st.integers(1, 9),
    shard=st.integers(1, 9),
    again=st.integers(1, 9),
    rng=st.randoms(use_true_random=False),
)
def test_rows_that_belong_together_are_never_cut_apart(sizes, batch, shard, again, rng):
    store = Store(f"memory://cut-{next(NUMBER)}")
    source = Grouped(sizes, batch)
    manifest = run_step(store, "counts", CountsGroups(), source, shard_rows=shard).manifest
    found = pa.concat_tables(store.read(manifest)).to_pydict()
    assert found == {"group": list(range(len(sizes))), "size": sizes}
    # Half of the parts are lost, and the step goes on with shards of another size.
    lose_half(store, manifest, rng)
    resumed = run_step(store, "counts", CountsGroups(), Grouped(sizes, again), shard_rows=again).manifest
    assert pa.concat_tables(store.read(resumed)).to_pydict() == found
