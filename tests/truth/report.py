"""What ci/validate does and prints. See README.md for the rules."""

import argparse
import math
import os
import sys
import time
from collections import Counter, defaultdict

import curves
import memory as memory_truth
import peers
import rows as rows_of
from fit import measure, refit
from run import ROOT, Broken, Program
from score import Board, gpu_class, is_hard, pair_weights, summary
from shapes import Unknown
from stats import Summary, median, percent
from tables import Unreadable, read_table

HERE = os.path.dirname(os.path.abspath(__file__))


def default_file(name):
    """The copy in published/, or None."""
    return next((path for path in (os.path.join(HERE, "published", name + end) for end in ("", ".gz")) if os.path.exists(path)), None)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="ci/validate", description="How right the model is against published measurements.")
    parser.add_argument("--rows", action="append", metavar="FILE", help="published steps (CSV, may be gzipped; repeatable)")
    parser.add_argument("--pairs", metavar="FILE", help="pairs of rows that differ in GPU count")
    parser.add_argument("--curves", metavar="FILE", help="measured collectives: also how well those never measured are told from them")
    parser.add_argument("--residuals", metavar="FILE", help="one line a row: predicted, measured and what they can be grouped by (TSV); FILE.pairs: one line a pair")
    parser.add_argument("--only", action="append", metavar="WORD", help="sources with this word (repeatable)")
    parser.add_argument("--assume", action="append", default=[], metavar="KEY=VALUE", help="another value of an assumed constant")
    parser.add_argument("--quick", action="store_true", help="constants as shipped only, no refits, no sensitivity")
    parser.add_argument("--program", metavar="FILE", help="the program (build/nodeworth)")
    parser.add_argument("--write", metavar="FILE", help="the accuracy page (docs/accuracy.md; none with --quick, --only or --assume)")
    return parser.parse_args(arguments)


def read_jobs(table, accepted, only):
    jobs, unread = [], []
    for row in table:
        if only and not any(word.lower() in row["source"].lower() for word in only):
            continue
        try:
            jobs.append(rows_of.read(row, accepted))
        except Unknown as reason:
            unread.append((row, str(reason)))
    return jobs, unread


def training_jobs(table, accepted):
    """The published rows that are kept here, for constants to be fitted on where other rows are scored; those of the same families are left out per
    family, those that are scored themselves altogether."""
    scored = {row["id"] for row in table}
    path = default_file("published_steps.csv")
    jobs = read_jobs(unique(rows_of.load([path])), accepted, None)[0] if path else []
    jobs = [job for job in jobs if job.measured_s and job.row["id"] not in scored]
    for job in jobs:
        job.training = True
    return jobs


def read_pairs(path, only, unread=None):
    """The pairs of a file; `unread` takes (line, reason) of those that state no ratio."""
    if not path:
        return []
    try:
        pairs, _ = read_table(path)
    except Unreadable as reason:
        raise SystemExit(f"ci/validate: {reason}") from None
    good = []
    for pair in pairs:
        try:
            stated = [float(pair["measured_step_ratio"]), float(pair["dp_comm_over_anchor_step"] or 0)]
            keys = all(pair[name] is not None for name in ("source", "model", "gpu", "gpus_anchor", "gpus_target", "precision", "strategy"))
        except (KeyError, ValueError) as reason:
            problem = f"no column {reason.args[0]}" if isinstance(reason, KeyError) else "no measured ratio"
        else:
            problem = "" if keys and stated[0] > 0 and all(map(math.isfinite, stated)) else "no measured ratio"
        if problem:
            if unread is not None:
                unread.append((pair, problem))
        elif not only or any(word.lower() in pair["source"].lower() for word in only):
            good.append(pair)
    return good


# ---- residuals ------------------------------------------------------------------------------------

def short(text, length=60):
    return " ".join(str(text).split())[:length]


PARTS = ("compute_ns", "exposed_communication_ns", "hidden_communication_ns", "optimizer_ns", "bubble_ns", "offload_ns", "jitter_ns")


def write_residuals(path, board, unread):
    names = ("id source family model gpu class framework profile strategy precision hidden seq gpus nodes tp pp cp micro global accumulation recompute attention metric "
             "measured predicted ratio low high scored reason assumed from").split() + [part[:-3] + "_ms" for part in PARTS]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\t".join(names) + "\n")
        for r in board.own:
            job, q = r.job, r.job.request
            memory = job.metric == "peak_mem_gib"
            measured = job.memory_gib if memory else job.measured_s
            predicted = (r.memory() if memory else r.predicted_s) if r.good else math.nan
            dp = q["ranks"] // (q.get("tp", 1) * q.get("pp", 1) * q.get("cp", 1))
            values = [job.row["id"], job.source, job.family, job.row["model"], job.gpu, gpu_class(job.gpu), job.row["framework"], job.profile, q["strategy"], q["precision"],
                      job.shape.hidden, q.get("seq", ""), q["ranks"], q["nodes"], q.get("tp", 1), q.get("pp", 1), q.get("cp", 1), q["micro-batch"], q["global-batch"],
                      q["global-batch"] // (dp * q["micro-batch"]), q["recompute"], q["attention"], job.metric,
                      f"{measured:.6g}", f"{predicted:.6g}", f"{predicted / measured:.4f}", f"{r.low:.6g}", f"{r.high:.6g}",
                      "no" if job.skip or not r.good else "yes", short(r.error or job.skip), ",".join(job.assumed), ",".join(r.answer.get("communication_from") or [])]
            values += [f"{r.answer[part] / 1e6:.4g}" if isinstance(r.answer.get(part), (int, float)) else "" for part in PARTS]
            file.write("\t".join(short(value, 90) for value in values) + "\n")
        for row, reason in unread:
            values = dict(id=row["id"], source=row["source"], family=rows_of.family(row["source"]), model=row["model"], framework=row["framework"], strategy=row["strategy"],
                          metric=row["metric"], measured=row["value"], scored="no", reason=reason)
            file.write("\t".join(short(values.get(name, ""), 90) for name in names) + "\n")


def write_pairs(path, ratio):
    with open(path, "w", encoding="utf-8") as file:
        file.write("source\tmodel\tgpu\tstrategy\tprecision\tanchor\ttarget\tmeasured\tpredicted\terror\tcomm\thard\tcovered\tscored\ttarget_id\n")
        for pair, r, error, covered, _ in sorted(ratio, key=lambda item: -abs(item[2])):
            measured = float(pair["measured_step_ratio"])
            file.write("\t".join(str(value) for value in (
                pair["source"], pair["model"], pair["gpu"], pair["strategy"], pair["precision"], pair["gpus_anchor"], pair["gpus_target"], measured, round(measured * (1 + error), 4),
                round(error, 4), pair["dp_comm_over_anchor_step"], "hard" if is_hard(pair) else "", covered, "no" if r.job.skip else "yes", r.job.row["id"])) + "\n")


# ---- tables ---------------------------------------------------------------------------------------

class Page:
    """Text that is printed and, as Markdown, kept for docs/accuracy.md."""

    def __init__(self):
        self.lines = []

    def say(self, text="", keep=True):
        print(text)
        if keep:
            self.lines.append(text)

    def write(self, path, first):
        text, blank = [], False
        for line in first + self.lines:
            if line or not blank:
                text.append(line)
            blank = not line
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(text).strip() + "\n")

    def title(self, text):
        self.say()
        self.say(f"## {text}")
        self.say()

    def table(self, heads, items):
        """Rows of texts; a Markdown table that reads as text."""
        widths = [max(len(str(item[i])) for item in [heads] + items) for i in range(len(heads))]
        for number, item in enumerate([heads] + items):
            self.say("| " + " | ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width) for i, (cell, width) in enumerate(zip(item, widths))) + " |")
            if number == 0:
                self.say("|" + "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths)) + "|")


def cells(s):
    if not s.rows:
        return ["0", "-", "-", "-", "-", "-"]
    return [str(s.rows), percent(s.median), percent(s.p90), percent(s.within, 0), percent(s.bias, sign=True), percent(s.coverage, 0)]


HEADS = ["rows", "median", "p90", "within 10 %", "bias", "in interval"]


def grouped(items, name):
    groups = defaultdict(list)
    for item in items:
        groups[name(item[0])].append(item)
    return sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def by(page, items, name, title, most=100):
    page.table([title] + HEADS, [[short(key, 44)] + cells(summary(members)) for key, members in grouped(items, name)[:most]])
    page.say()


def count_table(page, table, jobs, unread, board):
    failed = [r for r in board.own if not r.good]
    skipped = Counter(r.job.skip for r in board.own if r.good and r.job.skip)
    page.say(f"{len(table)} rows: {len(board.own) - len(failed)} predicted, {len(unread) + len(failed)} not predictable, "
             f"{sum(skipped.values())} of the predicted run but not scored.")
    page.title("Not predictable")
    reasons = Counter(reason for _, reason in unread) + Counter("program: " + short(r.error, 100) for r in failed)
    page.table(["reason", "rows"], [[reason, str(n)] for reason, n in reasons.most_common(40)])
    page.title("Run but not scored")
    page.table(["reason", "rows"], [[reason, str(n)] for reason, n in skipped.most_common()])
    page.title("Taken by default, because the row leaves it open")
    assumed = Counter(word for r in board.own for word in set(r.job.assumed))
    page.table(["what", "rows"], [[word, str(n)] for word, n in assumed.most_common()])


def pair_summary(items):
    return Summary([i[2] for i in items], pair_weights(items), [i[3] for i in items])


def no_slow_down(items):
    return Summary([1 / float(i[0]["measured_step_ratio"]) - 1 for i in items], pair_weights(items))


def left_out_table(page, board, found, claims):
    """What a claim lost on the way to its figure."""
    page.title("Not in a claim")
    alone, wide = board.without_group(), board.without_group(4096)
    failed = ", ".join(f"{n} × {what}" for what, n in sorted(board.unanswered.items()) if n)
    page.say(f"Anchored: {len(alone)} scored rows are the only configuration of their machine and stack, so nothing can anchor them ({len(wide)} of hidden ≥ 4096). "
             f"Ratio: {len(found) - len(claims.ratio)} of {len(found)} pairs found have no answer. Answers that failed in these two claims, in all runs of this page: {failed or 'none'}.")


def ratio_line(items):
    hard, clean = [i for i in items if is_hard(i[0])], [i for i in items if not i[1].job.skip]
    trivial, trivial_hard = no_slow_down(items), no_slow_down(hard)
    return (f"{pair_summary(items).text('pairs')}; hard pairs: {pair_summary(hard).text('pairs')}; without pairs of rows that are not scored: "
            f"{pair_summary(clean).text('pairs')}; \"no slow-down\" would be median {percent(trivial.median)}, within 10 % {percent(trivial.within, 0)} "
            f"(hard {percent(trivial_hard.median)}, {percent(trivial_hard.within, 0)})")


def memory_items(board):
    return [(r, r.memory() / r.job.memory_gib - 1, None) for r in board.own if r.good and r.job.memory_gib and not r.job.skip and r.memory() == r.memory()]


def by_policy(memory):
    """(policy stated, not stated)"""
    return [[item for item in memory if item[0].job.policy_stated is flag] for flag in (True, False)]


def memory_line(items):
    stated, left_open = by_policy(items)
    return f"policy stated: {summary(stated).text()}; not stated: {summary(left_open).text()}"


class Claims:
    """The three claims with some constants: as shipped, or held out."""

    def __init__(self, board, found, assume_of, results, factors):
        self.ratio = board.ratios(found, assume_of)
        self.anchored, self.anchored_rest = board.anchored(assume_of)
        self.wide, self.wide_rest = board.anchored(assume_of, least_hidden=4096)
        self.specs = board.specifications(results, factors)

    def lines(self, memory):
        return [f"ratio: {ratio_line(self.ratio)}",
                f"anchored: hidden >= 4096, once per machine and stack by its other runs: {summary(self.wide_rest).text()}; by any single other run: "
                f"{summary(self.wide).text()}; all hidden sizes, once: {summary(self.anchored_rest).text()}; by a single run: {summary(self.anchored).text()}",
                f"specifications: {summary(self.specs).text()}",
                f"memory: {memory_line(memory)}"]


def sensitivity(page, board, effects, found):
    """Each constant ± 10 %: what it does to the three medians (anchors by ratios of predictions here, as shipped otherwise)."""
    scored = board.steps()
    position = {id(r): i for i, r in enumerate(board.results)}

    def medians(results):
        logs = {id(r): math.log(results[position[id(r)]].predicted_s / r.job.measured_s) for r in scored if results[position[id(r)]].good}
        groups = defaultdict(list)
        for r in scored:
            if id(r) in logs:
                groups[r.job.source, r.job.gpu, r.job.row["precision"], r.job.row["framework"]].append(logs[id(r)])
        anchored = [abs(math.exp(x - median(members)) - 1) for members in groups.values() if len(members) > 1 for x in members]
        ratio = []
        for _, anchors, targets in found:
            a, t = results[position[id(anchors[0])]], results[position[id(targets[0])]]
            if a.good and t.good:
                ratio.append(abs(math.exp(math.log(t.predicted_s / targets[0].job.measured_s) - math.log(a.predicted_s / anchors[0].job.measured_s)) - 1))
        return [median(ratio), median(anchored), median([abs(math.exp(x) - 1) for x in logs.values()])]

    base = medians(board.results)
    page.title("Sensitivity: each constant 10 % lower and higher")
    page.say(f"Medians as shipped, anchors by ratios of predictions: ratio {percent(base[0], 2)}, anchored {percent(base[1], 2)}, specifications {percent(base[2], 2)}. Change in percentage points:")
    page.say()
    items = []
    for key, sides in effects.sides.items():
        moves = [[m - b for m, b in zip(medians(side), base)] for side in sides]
        items.append([key, f"{effects.values[key]:.4g}"] + [f"{moves[0][i] * 100:+.2f} / {moves[1][i] * 100:+.2f}" for i in range(3)])
    page.table(["constant", "value", "ratio", "anchored", "specifications"], items)


def refit_table(page, effects, changes, together):
    page.title("Constants fitted again")
    page.say("All families together, and the range over the fits that leave one family out. A constant whose range is wide is not known.")
    page.say()
    items = []
    for key in effects.keys:
        spread = sorted(effects.values[key] * math.exp(change.get(key, 0)) for change in changes.values())
        items.append([key, f"{effects.values[key]:.4g}", f"{effects.values[key] * math.exp(together.get(key, 0)):.4g}", f"{spread[0]:.4g} … {spread[-1]:.4g}"])
    page.table(["constant", "shipped", "all families", "one left out"], items)


def sources(page, claims, memory):
    page.title("Ratio: pairs of runs that differ in GPU count")
    page.table(["source"] + HEADS, [[short(key, 44)] + cells(pair_summary(members)) for key, members in
                                    grouped(claims.ratio, lambda pair: pair["source"])])
    page.title("Anchored: by source")
    by(page, claims.anchored, lambda r: r.job.source, "source")
    page.title("Specifications only: by source, held out")
    by(page, claims.specs, lambda r: r.job.source, "source")
    by(page, claims.specs, lambda r: gpu_class(r.job.gpu), "GPU")
    by(page, claims.specs, lambda r: r.job.profile, "framework profile")
    by(page, claims.specs, lambda r: r.job.request["precision"], "precision")
    by(page, claims.specs, lambda r: r.job.request["strategy"], "strategy")
    page.title("Memory")
    by(page, memory, lambda r: r.job.source, "source")
    by(page, memory, lambda r: r.job.profile, "framework profile")


def curve_table(page, path, program):
    """How well collectives that were not measured are told from those that were: curves.py. Why there is no such table, or ""."""
    probe = os.path.join(os.path.dirname(os.path.abspath(program.path)), "tests", "fabric_probe")
    if not path:
        return "no file of measured collectives (tests/truth/published/busbw_curves.csv)"
    if not os.access(probe, os.X_OK):
        return f"no {probe} (build the target tests/fabric_probe)"
    try:
        measured = curves.read(path)
    except Unreadable as reason:
        return str(reason)
    if not measured:
        return f"{path} has no measured collective"
    page.title("Collectives: a part of the measured curves hidden and asked for")
    found, unknown = curves.residuals(measured, curves.machines(), probe)
    page.say("```")
    for line in curves.table_of(found):
        page.say(line)
    page.say("```")
    if unknown:
        page.say("Not answered: " + ", ".join(f"{n} points of {kind}" for kind, n in unknown.items()))
    return ""


def collected_afterwards(page, program, accepted):
    """Runs that were collected when the constants stood, with the constants as they are."""
    path = default_file("more_steps.csv")
    if not path:
        return
    table = unique(rows_of.load([path]))
    jobs, unread = read_jobs(table, accepted, None)
    board = Board(jobs, program)
    specs, memory = board.specifications(), memory_items(board)
    turn, once = board.anchored({})
    stated, left_open = by_policy(memory)
    failed = sum(not r.good for r in board.own)
    page.title("Runs collected afterwards")
    page.say(f"`published/more_steps.csv`, as shipped: {len(table)} rows of {len({row['source'] for row in table})} sources, {len(unread) + failed} not predictable, "
             f"{sum(bool(r.job.skip) for r in board.own if r.good)} of the predicted not scored. No constant was fitted to them; some mapping rules and model faults were mended after seeing them.")
    page.say()
    page.table(["claim"] + HEADS, [[name] + cells(summary(items)) for name, items in (
        ("specifications", specs), ("anchored, once", once), ("anchored, by a single run", turn),
        ("memory, policy stated", stated), ("memory, not stated", left_open))])
    page.say()
    by(page, specs, lambda r: r.job.source, "specifications: source")


INTRO = """# Accuracy

How far the model is from published measurements. Written by `ci/validate`, which runs `nodeworth predict --batch` over `tests/truth/published`; the rules
(what is predicted, assumed, scored, held out) are in `tests/truth/README.md`, which also lists what was changed after residuals had been seen.

Three claims, never mixed: *ratio* (a pair of runs that differ in GPU count, the smaller measured), *anchored* (a machine and
software stack is calibrated once: by the median of its other runs, or by any single one of them, which is harder), *specifications* (nothing measured). Errors are |predicted / measured − 1|; bias is the median of the signed ones; *in interval* is
the share of measured values inside the printed interval. Constants and the profiles' time factors are fitted again without the family of sources that is
scored; other properties of a profile are not, so a source that is the only one of its profile is not wholly held out. Neither are the widths of the intervals
(`*_ERROR`) nor the gap between kernels: *in interval* is of widths that were chosen with all rows in view. The shipped constants themselves were chosen having
seen every family, and each refit starts from them and is held near them where the rows say little: it checks that no single source carries a constant, and is no blind
test. Nearest to one are the *runs collected afterwards*. *As shipped* is the program as it is.
"""


def main(arguments):
    try:
        return validate(parse(arguments))
    except (Broken, OSError) as reason:
        raise SystemExit(f"ci/validate: {reason}") from None


def validate(options):
    started = time.time()
    paths = options.rows or [path for path in (default_file("published_steps.csv"), default_file("published_steps_vtrain_single.csv")) if path]
    if not paths:
        raise SystemExit("ci/validate: no rows: neither tests/truth/published nor --rows FILE")
    table = unique(rows_of.load(paths))
    program = Program(options.program)
    accepted = program.accepted()
    jobs, unread = read_jobs(table, accepted, options.only)
    if options.rows and not options.quick:
        jobs += training_jobs(table, accepted)
    board = Board(jobs, program, {name: float(value) for name, value in (text.split("=", 1) for text in options.assume)})
    if options.residuals:
        write_residuals(options.residuals, board, unread)
    shipped = {item["name"]: item["value"] for item in program.list("frameworks") if isinstance(item, dict) and "value" in item}
    page = Page()
    count_table(page, table, jobs, unread, board)
    no_pairs = []
    pairs = read_pairs(options.pairs or default_file("scaling_pairs.csv"), options.only, no_pairs)
    found, missing = board.find_pairs(pairs)
    missing += no_pairs
    if missing:
        page.title("Pairs not scored")
        page.table(["reason", "pairs"], [[reason, str(n)] for reason, n in Counter(why for _, why in missing).most_common()])
    memory = memory_items(board)
    frozen = Claims(board, found, {}, board.results, None)
    if options.residuals:
        write_pairs(options.residuals + ".pairs", frozen.ratio)
    held = frozen
    if not options.quick:
        effects = measure(board)
        more = board.find_pairs(read_pairs(default_file("scaling_pairs.csv"), None), training=True)[0] if options.rows else []
        fits, changes, together = refit(board, effects, found + more)
        held = Claims(board, found, fits, board.run_by_family(fits), board.factors(shipped, effects.slopes, changes))
        sensitivity(page, board, effects, found)
        refit_table(page, effects, changes, together)
    left_out_table(page, board, found, held)
    sources(page, held, memory)
    memory_held = memory_truth.held_out(page, memory)
    peers.table(page, held.specs, frozen.specs, memory, accepted)
    page.title("As shipped: specifications only")
    by(page, frozen.specs, lambda r: r.job.source, "source")
    by(page, frozen.specs, lambda r: r.job.profile + " " + gpu_class(r.job.gpu), "profile and GPU")
    no_curves = curve_table(page, options.curves or default_file("busbw_curves.csv"), program)
    if not (options.rows or options.quick or options.only or options.assume):
        collected_afterwards(page, program, accepted)
    lines = [f"as shipped {line}" for line in frozen.lines(memory)]
    totals = [f"total {line}" for line in held.lines(memory if options.quick else memory_held)]
    first = INTRO.splitlines() + ["", "## In all", ""] + [f"- {line}" for line in totals + ([] if options.quick else lines)] + ["", "## Rows", ""]
    page.say("", keep=False)
    page.say(f"{time.time() - started:.0f} s", keep=False)
    page.title("In all")
    for line in ([] if options.quick else lines) + totals:
        page.say(line)
    del page.lines[len(page.lines) - page.lines[::-1].index("## In all") - 1:]
    if no_curves:
        print(f"ci/validate: no table of collectives: {no_curves}", file=sys.stderr)
    if options.quick or options.only or options.assume:
        return 0
    if no_curves and not options.write:
        print("ci/validate: docs/accuracy.md is left as it was", file=sys.stderr)
        return 1
    page.write(options.write or os.path.join(ROOT, "docs", "accuracy.md"), first)
    return 0


def unique(table):
    """A row that is in two files (a sample of another) counts once, by its configuration and value."""
    seen, out = set(), []
    for row in table:
        key = tuple(value for name, value in sorted(row.items()) if name not in ("id", "notes", "url_or_repo_path"))
        if key not in seen:
            seen.add(key)
            out.append(row)
    return out
