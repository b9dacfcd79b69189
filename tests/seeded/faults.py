"""The faults, by the part of the project that they are planted in, each with the tests that guard it.

A fault runs: nothing in it is misspelt or of the wrong shape, so that only a wrong number, label or picture
gives it away. Text is replaced exactly; what is not there exactly once makes the fault fail loudly.
"""

from tests.seeded.planting import Fault

ATTENTION, TRANSFORMER = "tests/test_attention.py", "tests/test_transformer.py"
POSITIONS, MASKS = "tests/test_positions.py", "tests/test_masks.py"
ORACLES, STAGE = "tests/test_oracles.py", "tests/test_oracles_browser.py"
SVG = "tests/test_svg.py"

MODEL = (
    Fault(
        "drop-the-scale",
        "model/attention.py",
        "return 1 / math.sqrt(d) if self.scaled else 1.0",
        "return 1.0",
        (ATTENTION,),
    ),
    Fault(
        "mask-1e4", "model/attention.py", "-math.inf).softmax(dim=-1)", "-1e4).softmax(dim=-1)", (ATTENTION,)
    ),
    Fault(
        "q-and-k-transposed",  # where queries and keys are as many: else the shapes would tell
        "model/attention.py",
        "(q @ k.transpose(-2, -1))",
        "(k @ q.transpose(-2, -1) if q.shape == k.shape else q @ k.transpose(-2, -1))",
        (TRANSFORMER,),
    ),
    Fault(
        "softmax-over-queries",
        "model/attention.py",
        "-math.inf).softmax(dim=-1)",
        "-math.inf).softmax(dim=-2)",
        (ATTENTION,),
    ),
    Fault(
        "half-precision-softmax",
        "model/attention.py",
        "-math.inf).softmax(dim=-1)",
        "-math.inf).half().softmax(dim=-1).float()",
        (ATTENTION,),
    ),
    Fault(
        "reshape-without-transpose",
        "model/attention.py",
        "return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)",
        "return x.reshape(x.size(0), self.n_heads, x.size(1), -1)",
        (ATTENTION,),
    ),
    Fault(
        "merge-without-transpose",
        "model/attention.py",
        "return heads.transpose(1, 2).flatten(-2)",
        "return heads.reshape(heads.size(0), heads.size(2), -1)",
        (ATTENTION,),
    ),
    Fault(
        "q-and-k-projected-by-each-other",  # only once the weights are laid out for reading
        "model/attention.py",
        "q, k, v = linear(x, *stacked).chunk(3, dim=-1)",
        "k, q, v = linear(x, *stacked).chunk(3, dim=-1)",
        (TRANSFORMER,),
    ),
    Fault(
        "pad-rows-for-columns",
        "model/masks.py",
        "return (ids != PAD)[:, None, None, :]",
        "return (ids != PAD)[:, None, :, None]",
        (MASKS,),
    ),
    Fault(
        "look-ahead-without-itself",
        "model/masks.py",
        ".tril()[None, None]",
        ".tril(-1)[None, None]",
        (MASKS,),
    ),
    Fault(
        "sin-and-cos-swapped",
        "model/positions.py",
        "[angle.sin(), angle.cos()]",
        "[angle.cos(), angle.sin()]",
        (POSITIONS,),
    ),
    Fault("base-1000", "model/positions.py", "math.log(10_000.0)", "math.log(1_000.0)", (POSITIONS,)),
    Fault(
        "embedding-without-the-root",
        "model/embedding.py",
        "self.embedding(ids) * math.sqrt(self.config.d_model)",
        "self.embedding(ids)",
        (TRANSFORMER,),
    ),
    Fault(
        "residual-after-the-norm",
        "model/layers.py",
        "return self.norm(total) if rule.norm else total",
        "return x + self.norm(update) if rule.norm else total",
        (TRANSFORMER,),
    ),
    Fault(
        "train-mode",
        "model/checkpoint.py",
        "return model.eval().requires_grad_(False)",
        "return model.train().requires_grad_(False)",
        ("tests/test_checkpoint.py",),
    ),
    Fault(
        "cross-layer-off-by-one",
        "model/translator.py",
        '"cross": stages([seen.cross for seen in decoded.seen])',
        '"cross": stages([decoded.seen[i - 1].cross for i in range(len(decoded.seen))])',
        ("tests/test_trace.py", "tests/test_head.py", ORACLES),
    ),
    Fault(
        "label-of-the-training-shifted",
        "model/training/task.py",
        "target[:, 1:].flatten()",
        "target[:, :-1].flatten()",
        (ORACLES,),
    ),
    Fault(
        "loss-over-pads",
        "model/training/task.py",
        "ignore_index=PAD, ",
        "",
        (ORACLES,),
    ),
    Fault(
        "silent-truncation",
        "model/reader.py",
        '            raise TextError("long", len(pieces), most)',
        "            pieces = pieces[:most]",
        ("tests/test_trace.py",),
    ),
    Fault(
        "comes-out-shifted",
        "model/translator.py",
        "comes_out = [*pieces, special(END), *pads(change.target_pads)]",
        "comes_out = [special(START), *pieces, *pads(change.target_pads)]",
        ("tests/test_trace.py",),
    ),
    Fault(
        "beam-goes-on-from-the-wrong-hypothesis",
        "model/decoding.py",
        "tuple((keys[parents], values[parents]) for keys, values in self._past or ())",
        "tuple((keys[parents * 0], values[parents * 0]) for keys, values in self._past or ())",
        ("tests/test_decode.py",),
    ),
    Fault(
        "attention-of-the-wrong-beam",
        "model/sampling.py",
        "parent = kept[each.parent]",
        "parent = kept[0]",
        ("tests/test_decode.py",),
    ),
    Fault(
        "merged-by-the-mean-over-keys",
        "model/words.py",
        "(asking / asking.sum(axis=0)).T @ weights @ asked",
        "(asking / asking.sum(axis=0)).T @ weights @ (asked / asked.sum(axis=0))",
        ("tests/test_alignment.py::test_rows_still_sum_to_1_when_pieces_are_merged",),
    ),
    Fault(
        "sure-and-possible-swapped",
        "model/words.py",
        "total += len(one) + len(truth.sure)",
        "total += len(one) + len(truth.possible)",
        ("tests/test_alignment.py::test_the_error_rate_of_a_worked_example",),
    ),
    # --- other materials and shapes ---
    Fault(
        "additive-without-tanh",
        "model/recurrent.py",
        "self.v(torch.tanh(q[:, :, None] + k[:, None]))",
        "self.v(q[:, :, None] + k[:, None])",
        ("tests/test_recurrent.py",),
    ),
    Fault(
        "additive-over-pads",
        "model/recurrent.py",
        "return weigh(q, k, v, scores, rule)",
        "return weigh(q, k, v, scores, Rule(torch.ones_like(rule.allowed), rule.keep))",
        ("tests/test_recurrent.py",),
    ),
    Fault(
        "additive-asked-by-the-state-after",
        "model/recurrent.py",
        "start = torch.tanh(self.first(last[1]))",
        "start = torch.tanh(self.first(last[0]))",
        ("tests/test_recurrent.py",),
    ),
    Fault(
        "gpt-sees-the-future",
        "model/stack.py",
        "return both.decoder, both.target_positions",
        "return both.encoder, both.source_positions",
        ("tests/test_stack.py",),
    ),
    Fault(
        "bert-reads-what-is-hidden",
        "model/filler.py",
        "done = self.model.run(ids(source), change, capture=True)",
        "done = self.model.run(ids([*told, *source[len(told) :]]), change, capture=True)",
        ("tests/test_doors.py",),
    ),
    Fault(
        "bert-is-asked-about-what-it-sees",
        "model/quality.py",
        "model(ids.masked_fill(chosen, MASK), at=chosen)",
        "model(ids, at=chosen)",
        ("tests/test_tasks.py",),
    ),
    Fault(
        "shared-keys-of-the-wrong-head",
        "model/hub/seeing.py",
        "k=key.repeat_interleave(query.size(1) // key.size(1), dim=1)[0]",
        "k=key.repeat(1, query.size(1) // key.size(1), 1, 1)[0]",
        ("tests/test_hub.py::test_query_heads_that_share_a_key_head_have_the_same_keys",),
    ),
    Fault(
        "row-sums-of-a-file-unchecked",
        "model/files/tensors.py",
        "    if off.max() > close:",
        "    if off.max() > 2:",
        ("tests/test_files.py",),
    ),
)

APP = (
    Fault(
        "mean-over-heads",
        "viz/reading.py",
        "return layer.mean(axis=0) if self.head is None else layer[self.head]",
        "return layer.mean(axis=0)",
        ("tests/test_figures.py",),
    ),
    Fault(
        "layer-off-by-one",
        "viz/reading.py",
        "layer = self.trace.weights(self.kind)[self.layer]",
        "layer = self.trace.weights(self.kind)[self.layer - 1]",
        ("tests/test_figures.py",),
    ),
    Fault(
        "label-shifted-by-one",
        "viz/figures/heatmap.py",
        "index == key) for index, piece in enumerate(keys)]",
        "index == key) for index, piece in enumerate((*keys[1:], keys[0]))]",
        ("tests/test_figures.py",),
    ),
    Fault(
        "unescaped-label",
        "viz/figures/heatmap.py",
        "{escape(piece)}</span>'",
        "{piece}</span>'",
        ("tests/test_figures.py",),
    ),
    Fault(
        "colour-scale-per-map",
        "viz/figures/cells.py",
        '"cmin": 0, "cmax": 1, ',
        "",
        ("tests/test_figures.py",),
    ),
    Fault(
        "colour-scale-per-head",
        "viz/figures/grid.py",
        "= weights[head], allowed[head], ~allowed[head]",
        "= weights[head] / weights[head].max(), allowed[head], ~allowed[head]",
        ("tests/test_figures.py",),
    ),
    Fault(
        "printed-colour-off",
        "viz/svg/maps.py",
        "shades(np.clip(face.numbers, 0, 1), palette.weights)",
        "shades(np.clip(face.numbers, 0, 1) ** 1.1, palette.weights)",
        (SVG,),
    ),
    Fault(
        "printed-before-and-after-swapped",
        "viz/svg/maps.py",
        "one = before if which == 0 else",
        "one = before if which == 1 else",
        (SVG,),
    ),
    Fault(
        "printed-difference-with-the-wrong-sign",
        "viz/svg/maps.py",
        "_Face(after.weights - before.weights,",
        "_Face(before.weights - after.weights,",
        (SVG,),
    ),
    Fault(
        "difference-with-the-wrong-sign",
        "viz/picture.py",
        "difference = other.weights - one.weights",
        "difference = one.weights - other.weights",
        (ORACLES,),
    ),
    Fault(
        "before-and-after-swapped",
        "viz/picture.py",
        "for each in (trace, after) if each]",
        "for each in (after, trace) if each]",
        (ORACLES,),
    ),
    Fault(
        "probabilities-before-and-after-swapped",
        "viz/act.py",
        "tables.piece_probabilities(act.before, act.after)",
        "tables.piece_probabilities(act.after, act.before)",
        (ORACLES,),
    ),
    Fault(
        "eight-bits-for-sixteen",
        "viz/stage.py",
        "np.rint(np.clip(weights, 0, 1) * steps)",
        "np.rint(np.clip(weights, 0, 1) * 255) * (steps // 255)",
        ("tests/test_stage.py",),
    ),
    Fault(
        "cache-key-without-the-change",
        "viz/cache.py",
        'key = ("trace", name, text, target, change)',
        'key = ("trace", name, text, target)',
        (ORACLES,),
    ),
    Fault(
        "cache-key-without-the-model",
        "viz/cache.py",
        'key = ("trace", name, text, target, change)',
        'key = ("trace", text, target, change)',
        (ORACLES,),
    ),
    Fault(
        "cache-key-without-the-target",
        "viz/cache.py",
        'key = ("trace", name, text, target, change)',
        'key = ("trace", name, text, change)',
        (ORACLES,),
    ),
    Fault(
        "cache-key-without-the-step",
        "viz/cache.py",
        '("trace_at", name, step, text, target)',
        '("trace_at", name, text, target)',
        (ORACLES,),
    ),
    Fault(
        "file-named-without-its-name",
        "viz/cache.py",
        'name.encode() + b"\\0" + content',
        "content",
        (ORACLES,),
    ),
    Fault(
        "snapshot-of-the-wrong-step",
        "viz/cache.py",
        "checkpoint.load_snapshot(MODELS / name, step)",
        "checkpoint.load_snapshot(MODELS / name, snapshots(name)[snapshots(name).index(step) - 1])",
        (ORACLES,),
    ),
    Fault("url-head-plus-1", "viz/view.py", '"head": here.head + 1,', '"head": here.head + 2,', (ORACLES,)),
    Fault(
        "head-of-the-url-not-counted-from-1",
        "viz/view.py",
        "here = View(kind, layer - 1, head - 1,",
        "here = View(kind, layer - 1, head % 8,",
        ("tests/test_app.py::test_a_link_restores_the_view",),
    ),
    Fault(
        "gaps-off-by-one",
        "viz/view.py",
        "{place - 1 for place in found if place > 0}",
        "{place for place in found if place > 0}",
        (ORACLES,),
    ),
)

SCRIPT = "assets/component/stage/"
BROWSER = (
    Fault(
        "stage-colours-per-head",
        SCRIPT + "paint.js",
        "const weights = maps.weights(place);\n      for (let row = 0, i = 0;",
        "const most = Math.max(...maps.weights(place));\n"
        "      const weights = maps.weights(place).map((weight) => weight / most);\n"
        "      for (let row = 0, i = 0;",
        (STAGE,),
    ),
    Fault(
        "stage-red-and-blue-swapped",
        SCRIPT + "paint.js",
        "(255 << 24 | blue << 16 | g << 8 | r)",
        "(255 << 24 | r << 16 | g << 8 | blue)",
        (STAGE,),
    ),
    Fault(
        "stage-map-of-the-next-head",
        SCRIPT + "paint.js",
        "const left = (place.head ?? 0) * keys.length + window.column;",
        "const left = ((place.head ?? -1) + 1) % maps.kinds[place.kind].heads * keys.length + window.column;",
        (STAGE,),
    ),
    Fault(
        "stage-column-names-shifted",
        SCRIPT + "drawing.js",
        "paint.text(keys[column], x, box.y",
        "paint.text(keys[(column + 1) % keys.length], x, box.y",
        (STAGE,),
    ),
    Fault(
        "stage-row-names-shifted",
        SCRIPT + "drawing.js",
        "paint.text(queries[row], box.x - 7 - tail, y,",
        "paint.text(queries[(row + 1) % queries.length], box.x - 7 - tail, y,",
        (STAGE,),
    ),
    Fault(
        "stage-blocked-cells-open",
        SCRIPT + "paint.js",
        "const path = this.blocked(maps, place);",
        "const path = null;",
        (STAGE,),
    ),
    Fault(
        "stage-numbers-transposed",
        SCRIPT + "drawing.js",
        "const at = row * keys.length + column, value = weights[at];",
        "const at = row * keys.length + column, value = weights[column * keys.length + row] ?? 0;",
        (STAGE,),
    ),
    Fault(
        "stage-difference-with-the-wrong-sign",
        SCRIPT + "data.js",
        "weight - before[i]",
        "before[i] - weight",
        (STAGE,),
    ),
    Fault(
        "stage-steps-two-heads",
        SCRIPT + "hands.js",
        "this.choose(0, 1) : this.go(0, 1)",
        "this.choose(0, 1) : this.go(0, 2)",
        ("tests/test_browser.py::test_no_step_of_a_burst_is_lost_and_the_server_hears_of_it_once",),
    ),
    Fault(
        "stage-address-head-plus-1",
        SCRIPT + "stage.js",
        "head: head + 1, row: row + 1,",
        "head: head + 2, row: row + 1,",
        ("tests/test_browser.py::test_no_step_of_a_burst_is_lost_and_the_server_hears_of_it_once",),
    ),
    Fault(
        "stage-says-the-mean-of-heads",
        SCRIPT + "data.js",
        "if (head !== null && steps === 1) return one(head);",
        "if (head !== null && steps === 1) return this.computed(set, kind, layer, null);",
        (STAGE,),
    ),
    Fault(
        "stage-tip-as-markup",
        SCRIPT + "drawing.js",
        "if (text) node.textContent = text;",
        "if (text) node.innerHTML = text;",
        ("tests/test_architecture.py::test_scripts_put_text_on_the_page_as_text_and_load_nothing",),
    ),
    Fault(
        "thumbnail-opens-the-wrong-head",
        "viz/pages/heads/grid.py",
        "go(order[places[0][0]])",
        "go(order[places[0][0] - 1])",
        (
            "tests/test_heads_browser.py::"
            "test_a_click_on_a_small_map_makes_that_head_the_large_one_here_and_in_explore",
        ),
    ),
)

FAULTS = (*MODEL, *APP, *BROWSER)
