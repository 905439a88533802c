"""Unit tests of ci/validate: statistics on rows with known answers, the mapping of rows that are easy to get wrong, what it does with bad files.

    python3 -m unittest -v test_truth        (in this folder; NODEWORTH names the program, without it what needs one is skipped)
"""

import csv
import gzip
import io
import math
import os
import re
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import fit  # noqa: E402
import memory  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import run  # noqa: E402
import score  # noqa: E402
import serving  # noqa: E402
import shapes  # noqa: E402
import stats  # noqa: E402
import tables  # noqa: E402

NAMES = {"frameworks": "pytorch pytorch-compile hf torchtitan torchtitan-compile composer litgpt deepspeed megatron nemo megatron-lm megatron-deepspeed apex jax paddle "
                       "internevo colossalai llm.c mxnet".split(),
         "strategies": "ddp zero1 zero2 zero3 fsdp fsdp-keep hsdp zeropp distopt none".split(), "optimizers": "adam adamw adam8bit adafactor lamb sgd sgd-plain".split()}
NAMES["models"] = {"deepseek-v3": "671 B parameters, 37.6 B a token, 61 layers of 7168", "deepseek-v2": "236 B parameters, 21.4 B a token, 60 layers of 5120",
                   "deepseek-v2-lite": "15.7 B parameters, 2.66 B a token, 27 layers of 2048", "yi-9b": "8.83 B parameters, 48 layers of 4096"}
ACCEPTED = run.Accepted(NAMES, run.catalogue())

COLUMNS = ("id source url_or_repo_path model params_b layers hidden heads kv_heads ffn vocab seq_len gpu gpus gpus_per_node intra_link inter_link_gbps_per_node framework strategy tp pp "
           "dp_shard dp_replicate micro_batch grad_accum global_batch_seqs recompute precision attention optimizer offload lora_rank metric value notes").split()
BASE = dict(id="x", source="somebody/something", model="Llama-2-7B", seq_len="4096", gpu="A100-SXM4-80GB", gpus="8", gpus_per_node="8", framework="PyTorch FSDP", strategy="fsdp",
            tp="1", pp="1", micro_batch="1", grad_accum="1", precision="bf16", recompute="none", attention="flash", optimizer="AdamW", offload="none", metric="step_s", value="2")


def row(**changes):
    return {**{name: "" for name in COLUMNS}, **BASE, **{name: str(value) for name, value in changes.items()}}


def read(**changes):
    return rows.read(row(**changes), ACCEPTED)


# what the row says → what the request has to say ("-": the key is absent)
MAPPED = [
    (dict(), {"strategy": "fsdp", "framework": "pytorch", "ranks": 8, "nodes": "1", "global-batch": 8, "gated": "yes", "tied": "no", "gpu": "A100 SXM4 80GB"}),
    (dict(strategy="zero1+tp+pp", tp=4, pp=4, gpus=64, framework="Megatron-DeepSpeed"), {"strategy": "zero1", "tp": 4, "pp": 4, "framework": "megatron-deepspeed", "global-batch": 4}),
    (dict(strategy="tp+pp+dp (distributed optimizer)", tp=4, pp=8, gpus=512, framework="NeMo / Megatron-Core", notes="CP 1; VP 6", layers=96, hidden=12288, heads=96, model="GPT3-175B"),
     {"strategy": "distopt", "tp": 4, "pp": 8, "virtual-stages": 6, "framework": "nemo", "sequence-parallel": "yes", "cp": "-"}),
    (dict(strategy="cp+dp (distributed optimizer)", framework="NeMo / Megatron-Core", notes="CP 2; VP "), {"cp": 2, "strategy": "distopt", "global-batch": 4, "virtual-stages": "-"}),
    (dict(strategy="tp8/pp16/dp4", tp="", pp="", gpus=512, layers=96, hidden=12288, heads=96, model="GPT", framework="Megatron-DeepSpeed"), {"tp": 8, "pp": 16, "strategy": "ddp"}),
    (dict(strategy="ddp (distributed LAMB, sharded optimizer)", framework="PyTorch, Merlin HugeCTR, NeMo Framework, DGL NVIDIA Release", optimizer="LAMB", model="BERT-large (MLPerf)", seq_len=512,
          micro_batch="", global_batch_seqs=768, precision="fp8 (TE)+fp16", notes="packs ~2 samples per 512-token row (48 packed rows/GPU at GBS 768)"),
     {"strategy": "zero1", "framework": "apex", "optimizer": "lamb", "micro-batch": 48, "global-batch": 384, "precision": "fp8", "encoder": "yes"}),
    (dict(strategy="fsdp+cp", framework="torchtitan (FSDP2)", grad_accum="", notes="FSDP 2, CP 4; context parallel 4; torch.compile", precision="bf16+fp8"),
     {"cp": 4, "framework": "torchtitan-compile", "precision": "fp8", "global-batch": 2}),
    (dict(strategy="hsdp", dp_shard=8, dp_replicate=16, gpus=128, framework="PyTorch FSDP + torch.compile"), {"strategy": "hsdp", "shard": 8, "framework": "pytorch-compile", "nodes": "16"}),
    (dict(strategy="fsdp", dp_shard=128, dp_replicate=4, gpus=512, framework="MaxText", gpu="H100-80GB"), {"shard": 128, "framework": "jax", "nic-gbps": 3200, "nic-count": 8}),
    (dict(strategy="fsdp", gpus=512, framework="Paxml", gpu="H100-80GB", model="GPT-175B", notes="Paxml GPT175B FP8 (FSDP+DP, MBS=2)"), {"shard": 128}),
    (dict(strategy="fsdp", gpus=64, framework="Paxml", gpu="H100-80GB", model="GPT-5B", notes="Paxml GPT5B FP8 (FSDP+DP, MBS=2)"), {"shard": 8}),
    (dict(strategy="fsdp", dp_shard=64, dp_replicate=1, gpus=64), {"shard": "-", "nic-gbps": 1600}),
    (dict(strategy="zero2", framework="llm-foundry/Composer (PyTorch FSDP)", notes="MP mode PURE (bf16 params/reduce); tied embeddings"),
     {"strategy": "fsdp-keep", "framework": "composer", "reduce": "bf16", "tied": "yes"}),
    (dict(strategy="zero2", framework="DeepSpeed 0.11.1"), {"strategy": "zero2", "framework": "deepspeed"}),
    (dict(strategy="zero3 + hpZ secondary shard + qwZ/qgZ int8/int4 (ZeRO++)", framework="DeepSpeed"), {"strategy": "zeropp"}),
    (dict(strategy="none", gpus=1, gpus_per_node=1), {"strategy": "none", "ranks": 1, "link": "-"}),
    (dict(strategy="none"), {"strategy": "ddp"}),
    (dict(framework="HF Trainer + DeepSpeed", strategy="zero3", offload="optimizer+params (cpu)"), {"framework": "deepspeed", "offload-optimizer": "cpu", "offload-params": "cpu"}),
    (dict(framework="HF Trainer", strategy="ddp", offload="optimizer (cpu)"), {"framework": "hf", "offload-optimizer": "cpu", "offload-params": "-"}),
    (dict(framework="LLM.Q (C++/CUDA)", precision="fp8 (e4m3) matmul, bf16 params", offload="opt-m+opt-v+master+residual", recompute="selective (ffn+norm)"),
     {"framework": "llm.c", "precision": "fp8", "recompute": "full", "offload-optimizer": "cpu"}),
    (dict(recompute="selective (norm+swiglu)"), {"recompute": "selective"}),
    (dict(framework="LitGPT", model="falcon-7b qlora", precision="bf16-true", strategy="none", gpus=1, grad_accum="", metric="peak_mem_gib", value=10),
     {"base": "nf4", "lora-rank": 16, "lora-targets": "q,v", "master": "none", "kv-heads": 1, "head-size": 64}),
    (dict(model="Llama 2 7 B QLoRA", precision="bf16-true (bnb.nf4-dq base)", lora_rank=8), {"base": "nf4", "lora-rank": 8, "gated": "yes"}),
    (dict(model="Llama-2-70B LoRA", strategy="tp+dp (LoRA)", tp="", dp_replicate=8, gpus=64, gpu="H100-SXM5-80GB", framework="NeMo/Megatron + TE", lora_rank=16, global_batch_seqs=8,
          notes="model-parallel (TPxCP) size 8 derived = gpus/(GBS/GA), PP=1"), {"tp": 4, "cp": 2, "strategy": "distopt", "lora-targets": "q,k,v,o"}),
    (dict(model="Llama-2-70B LoRA", strategy="tp+dp (LoRA)", tp="", dp_replicate=8, gpus=8, gpu="B200-SXM-180GB", framework="NeMo/Megatron + TE", global_batch_seqs=8,
          notes="model-parallel (TPxCP) size 1 derived"), {"tp": "-", "cp": "-"}),
    (dict(model="Llama-2-7B LoRA", notes="LoRA r=8 on q_proj,v_proj"), {"lora-rank": 8, "lora-targets": "q,v"}),
    (dict(gpu="GB200", gpus=256, gpus_per_node=4), {"gpu": "GB200 186GB", "gpus-per-node": 64, "nodes": "4", "nic-gbps": 25600, "nic-count": 64}),
    (dict(gpu="H100-94GB"), {"gpu": "H100 SXM5 80GB", "gpu-memory": "94GiB"}),
    (dict(gpu="H100 80GB PCIe Gen5", intra_link="PCIe 5.0"), {"gpu": "H100 PCIe 80GB", "link": "pcie"}),
    (dict(gpu="RTX 4090", intra_link="PCIe (no NVLink, no P2P on stock driver)"), {"link": "pcie", "gpu": "RTX 4090 24GB"}),
    (dict(gpu="V100-16GB (Azure NC24s_v3)", precision="", framework="PyTorch DDP", strategy="ddp"), {"gpu": "V100 SXM2 16GB", "precision": "fp16"}),
    (dict(gpu="A800-SXM4-80GB (labelled A100)"), {"gpu": "A800 SXM4 80GB"}),
    (dict(precision="fp32 (TF32 per PyTorch 1.7 default)"), {"precision": "tf32"}),
    (dict(precision="fp32", gpu="V100-32GB"), {"precision": "fp32"}),
    (dict(precision="bf16/fp16 amp"), {"precision": "bf16"}),
    (dict(precision="MXFP8", gpu="B200-SXM-180GB"), {"precision": "fp8"}),
    (dict(gpus=16, intra_link="2 x 200Gbe Ethernet"), {"nic-gbps": 400, "nic-count": 2}),
    (dict(gpus=32, inter_link_gbps_per_node=100), {"nic-gbps": 100, "nic-count": 1}),
    (dict(strategy="dp (Megatron-DeepSpeed, ZeRO stage not stated)", framework="Megatron-DeepSpeed"), {"strategy": "zero1"}),
    (dict(framework="Megatron-LM", strategy="tp+pp+sp", tp=8, notes="sequence parallel + selective recompute"), {"sequence-parallel": "yes", "framework": "megatron-lm"}),
    (dict(framework="Megatron-LM", strategy="tp+pp", tp=8, notes="full recompute, no SP"), {"sequence-parallel": "no"}),
    (dict(model="GPT 200B", hidden=14400, layers=80, params_b=200, ffn=57600, vocab=250000, tp=8, gpus=64, strategy="zero1+tp", framework="Megatron-DeepSpeed"), {"heads": 120, "head-size": 120}),
    (dict(model="GPT 194B", hidden=14400, params_b=194, vocab=250000, tp=8, gpus=64, strategy="zero1+tp", framework="Megatron-DeepSpeed"), {"layers": 77}),
    (dict(model="DeepSeekV2-l4", layers=4), {"model": "deepseek-v2", "layers": 4, "hidden": "-"}),
    (dict(model="DeepSeek-V2-Lite", framework="InternEvo"), {"model": "deepseek-v2-lite", "layers": "-", "framework": "internevo"}),
    (dict(model="Yi-9B SFT"), {"model": "yi-9b"}),
    (dict(model="llama3-70b-l12", layers=12), {"layers": 12, "hidden": 8192, "model": "-"}),
    (dict(framework="TensorFlow 1.15 (NGC)", gpu="Tesla V100-SXM2-16GB 300W", precision="fp16 amp"), {"framework": "mxnet", "gpu": "V100 SXM2 16GB"}),
    (dict(framework="GPT-NeoX"), {"framework": "megatron-deepspeed"}),
    (dict(model="Mixtral 8x7B"), {"experts": 8, "experts-per-token": 2, "ffn": 14336}),
    (dict(model="GPT-1.7B", layers=24, hidden=2304, vocab=51200), {"ffn": 9216, "heads": 18, "tied": "yes", "gated": "no"}),
    (dict(global_batch_seqs=512, micro_batch=4, grad_accum=""), {"global-batch": 512, "micro-batch": 4}),
    (dict(global_batch_seqs=64, micro_batch="", grad_accum=4), {"micro-batch": 2, "global-batch": 64}),
    (dict(global_batch_seqs=512, micro_batch="", grad_accum=""), {"micro-batch": 4}),
    (dict(strategy="fsdp+tp+pp", tp=8, pp=8, gpus=512, micro_batch="", grad_accum="", framework="torchtitan (FSDP2)", model="Llama-3.1-405B", notes="schedule 1F1B; local batch 32"),
     {"micro-batch": 4, "global-batch": 256}),
    (dict(strategy="tp+pp", tp=8, pp=8, gpus=64, micro_batch="", grad_accum="", global_batch_seqs=64, framework="Megatron-LM", model="GPT3-175B"), {"micro-batch": 1, "global-batch": 64}),
    (dict(framework="Megatron-Core / Megatron-Bridge", model="Llama-3.1-405B", strategy="tp+pp+dp (distributed optimizer)", tp=4, pp=16, gpus=256, notes="VP 8"), {"virtual-stages": 8}),
    (dict(framework="Megatron-Core / Megatron-Bridge", model="Llama-3-70B", strategy="tp+pp+dp", tp=4, pp=4, gpus=64, notes="VP 6"), {"virtual-stages": 5}),
    (dict(framework="Megatron-Core", model="Qwen3-235B-A22B", strategy="tp+pp+ep+dp", tp=2, pp=8, gpus=256, gpu="H100", notes="EP 32"), {"ep": 16}),
    (dict(notes="CP 4 (sequence parallel of the Ulysses kind)"), {"cp": 4, "sequence-parallel": "-"}),
    (dict(model="Llama 2 7 B QLoRA", precision="fp16 (int4 GPTQ base)", lora_rank=8), {"precision": "fp16", "base": "nf4"}),
    (dict(model="Llama-2-7B LoRA", precision="bf16 (int8 base)", lora_rank=8), {"precision": "bf16", "base": "int8"}),
    (dict(framework="torchtune", notes="chunked cross entropy"), {"loss": "chunked"}),
    (dict(framework="abacus"), {"framework": "pytorch"}),
    (dict(strategy="FULL_SHARD"), {"strategy": "fsdp"}),
    (dict(framework="DeepSpeed", strategy="ZeRO stage 2 offload"), {"strategy": "zero2"}),
    (dict(framework="DeepSpeed", strategy="ZeRO-Infinity"), {"strategy": "zero3"}),
    (dict(recompute="FALSE"), {"recompute": "none"}),
    (dict(notes="plain cross entropy"), {"loss": "-"}),
]

REFUSED = [
    (dict(gpu="24GB-class GPU"), "GPU"), (dict(gpu=""), "GPU"), (dict(gpus=""), "GPU count"), (dict(gpus="many"), "GPU count"),
    (dict(model="Foo-9B"), "shape"), (dict(model="Transformer-XL base wt103", layers=16, hidden=512), "neither"),
    (dict(precision="NVFP4"), "precision"), (dict(optimizer="Muon"), "optimizer"), (dict(recompute="sometimes"), "recomputation"),
    (dict(strategy="swarm"), "strategy"), (dict(seq_len=""), "sequence"), (dict(micro_batch="", grad_accum=""), "batch"),
    (dict(tp=3), "divide"), (dict(value="fast"), "value"), (dict(value="-1"), "value"), (dict(value="nan"), "value"), (dict(metric="joy"), "metric"), (dict(metric=""), "metric"),
    (dict(strategy="tp+pp+dp", tp="", pp=""), "stages"), (dict(metric="mfu", gpu="Somebody 9000", value=40), "unknown peak"),
]


class Tables(unittest.TestCase):
    """Files that somebody else wrote."""

    def read(self, data):
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            file.write(data)
            file.flush()
            return tables.read_table(file.name)

    def test_the_forms_of_a_table_say_the_same(self):
        text = 'id,notes,value\n1,"a, ""b""\nc",2\n2,,\n'
        want = [{"id": "1", "notes": 'a, "b"\nc', "value": "2"}, {"id": "2", "notes": "", "value": ""}]
        for data in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode()), ("\0" + text).encode()):
            self.assertEqual(self.read(data)[0], want)
        self.assertEqual(self.read(b"ID;Value\r\n1;2;3\r\n4\r\n")[0], [{"id": "1", "value": "2"}, {"id": "4", "value": ""}])
        self.assertEqual(len(self.read(b"id\tnotes\n1\t" + b"n" * 200000 + b"\n")[0][0]["notes"]), 200000)

    def test_what_is_no_table_is_told(self):
        for data in (gzip.compress(b"id,value\n1,2\n")[:15], b"\x1f\x8bnothing"):
            with self.assertRaises(tables.Unreadable):
                self.read(data)
        with self.assertRaises(tables.Unreadable):
            tables.read_table("/nowhere/at/all.csv")

    def test_columns_that_say_more_may_be_absent(self):
        with tempfile.NamedTemporaryFile(suffix=".csv", mode="w") as file:
            file.write("id,source,model,gpu,gpus,framework,strategy,metric,value,seq_len,micro_batch\n1,a/b,Llama-2-7B,A100-80GB,8,PyTorch,fsdp,step_s,2,4096,1\n")
            file.flush()
            found = rows.load([file.name])
        self.assertEqual(rows.read(found[0], ACCEPTED).request["ranks"], 8)


class Mapping(unittest.TestCase):
    def test_rows_become_the_requests_they_mean(self):
        for changes, wanted in MAPPED:
            request = read(**changes).request
            for key, value in wanted.items():
                with self.subTest(changes=changes, key=key):
                    self.assertEqual(request.get(key, "-"), value)

    def test_rows_that_state_too_little_say_what(self):
        for changes, word in REFUSED:
            with self.subTest(changes=changes), self.assertRaisesRegex(shapes.Unknown, word):
                read(**changes)

    def test_metrics_become_seconds_of_an_optimizer_step(self):
        tokens = read(metric="tokens_per_s_per_gpu", value=4096, micro_batch=2, grad_accum=3)
        self.assertAlmostEqual(tokens.measured_s, 6.0)  # 2 × 3 sequences of 4096 a GPU
        layers = 32 * (2 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 4 * 4096 * 4096)
        flops = 4096 * 3 * (layers + 2 * 4096 * 32000)
        self.assertAlmostEqual(read(metric="tflops_per_gpu", value=100).measured_s, flops / 100e12)
        self.assertAlmostEqual(read(metric="mfu", value=50).measured_s, flops / 156e12)
        hardware = read(metric="tflops_per_gpu", value=100, notes="FLOPs include recompute (hardware FLOPs)").measured_s
        self.assertAlmostEqual(hardware, (flops + 4096 * layers) / 100e12)
        self.assertEqual(read(metric="peak_mem_gib", value=40, framework="LitGPT").memory_kind, "allocated")
        self.assertEqual(read(metric="peak_mem_gib", value=40, framework="torchtitan (FSDP2)").memory_kind, "reserved")
        self.assertEqual(read(metric="peak_mem_gib", value=40).memory_kind, "all")

    def test_what_is_not_scored_is_told_by_words_of_source_and_notes(self):
        self.assertEqual(read().skip, "")
        for changes in (dict(source="DeepSpeed issue 1"), dict(notes="run-to-run +/-40%"), dict(notes="integer bar labels read from figure"), dict(notes="table inconsistent: a != b"),
                        dict(notes="end-to-end incl. data loading"), dict(notes="log tps 46920 (tokens/step 524288, implied 23460)"), dict(notes="LDDL loader (supports length binning)"),
                        dict(source="VIA-Research/vTrain", model="GPT 20x1024", layers=20, hidden=1024, heads=16),
                        dict(notes="ANALYTIC figure", metric="peak_mem_gib")):
            with self.subTest(changes=changes):
                self.assertNotEqual(read(**changes).skip, "")
        self.assertEqual(read(notes="ANALYTIC figure").skip, "")  # of memory only
        self.assertEqual(read(source="VIA-Research/vTrain", model="GPT 20x2048", layers=20, hidden=2048, heads=16).skip, "")

    def test_sources_of_one_owner_are_one_family(self):
        same = [("MLPerf Training v4.0 (Dell)", "MLPerf Training v5.0 (NVIDIA)"), ("bigscience (Jean Zay A100)", "bigscience (Jean Zay V100)"),
                ("NVIDIA/Megatron-LM README (H100)", "NVIDIA/Megatron-LM README 2021 (A100)"), ("Lightning-AI/litgpt", "Lightning-AI/litgpt thunder"),
                ("torchtitan/Trainy-WhiteFiber", "pytorch/torchtitan"), ("IST-DASLab/llmq", "IST-DASLab/llmq (LLaMA-Factory baseline)")]
        for one, other in same:
            self.assertEqual(rows.family(one), rows.family(other), one)
        self.assertNotEqual(rows.family("mosaicml/llm-foundry"), rows.family("pytorch/torchtitan"))
        self.assertTrue(rows.family("(2021)"))

    def test_public_shapes_have_the_published_parameters(self):
        for name, billions in (("Llama-3.1-8B", 8.03), ("LLaMA-13B", 13.016), ("Llama-3.1-405B", 405.85), ("Qwen2.5-7B", 7.61), ("Mixtral-8x7B", 46.7), ("gemma-2-9b", 9.24), ("GPT2-xl", 1.558),
                               ("falcon-7b lora", 6.92), ("BERT-large pretrain", 0.335), ("Qwen3-30B-A3B", 30.5), ("TinyLlama-1.1B", 1.1), ("internlm2-7b", 7.74), ("chatglm3-6b", 6.24)):
            shape, _ = shapes.find(row(model=name))
            self.assertAlmostEqual(shape.parameters() / 1e9 / billions, 1, delta=0.02, msg=name)
        with self.assertRaises(shapes.Unknown):
            shapes.find(row(model="GPT", layers=3, hidden=8, heads=99))

    def test_policy_is_stated_only_where_everything_is(self):
        self.assertTrue(read(metric="peak_mem_gib").policy_stated)
        self.assertFalse(read(metric="peak_mem_gib", recompute="").policy_stated)
        self.assertFalse(read(metric="peak_mem_gib", grad_accum="", global_batch_seqs="").policy_stated)


class Statistics(unittest.TestCase):
    def test_quantiles_of_weights(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertEqual(stats.median([1, 2, 3, 4]), 2.5)
        self.assertEqual(stats.median([1, 2, 3], [10, 1, 1]), 1)
        self.assertTrue(math.isnan(stats.median([])))
        self.assertEqual(stats.quantile([(v, 1) for v in range(1, 11)], 0.9), 9.5)
        self.assertEqual(stats.weights_of(["a", "b", "a"]), [0.5, 1, 0.5])

    def test_summary_of_known_errors(self):
        s = stats.Summary([0.05, -0.05, 0.2, -0.3], None, [1, 1, 0, None])
        self.assertEqual((s.rows, round(s.median, 9), round(s.within, 9)), (4, 0.125, 0.5))
        self.assertAlmostEqual(s.coverage, 2 / 3)
        self.assertAlmostEqual(s.bias, 0.0)
        self.assertAlmostEqual(s.mean, 0.15)
        doubled = stats.Summary([0.05, 0.05, 0.2], [0.5, 0.5, 1])
        self.assertAlmostEqual(doubled.within, 0.5)
        self.assertIn("3 rows (2 different)", doubled.text())
        self.assertEqual(stats.Summary([]).text(), "no rows")

    def test_levels_weigh_a_family_by_the_root_of_its_rows(self):
        items = [("a", "p", 0.3)] * 9 + [("b", "p", 0.0)] * 4 + [("c", "p", 0.1)] * 4
        self.assertAlmostEqual(stats.levels(items)["p"], 0.1 * 3 / 4)  # 3 of 7 at 0.3
        items += [("a", "p", 0.3)] * 16
        self.assertAlmostEqual(stats.levels(items)["p"], 0.3 * 3 / 4)  # 5 of 9
        # what is shipped is part of what is fitted
        self.assertAlmostEqual(stats.levels([("a", "p", 0.0)], {"p": 0.2})["p"], -0.1)

    def refit(self, results, slopes):
        """With a pair of the odd family; D is a constant of one of its rows, E does nothing."""
        mine = [float(r.job.row["id"] == "odd3") for r in results]
        ends = [r for r in results if r.job.row["id"] in ("odd0", "odd5")]
        found = [({}, ends[:1], ends[1:])] if ends else []
        effects = fit.Effects(["C", "D", "E"], dict.fromkeys("CDE", 1.0), set(), {"C": slopes, "D": mine, "E": [0.0] * len(slopes)}, {})
        return fit.refit(FakeBoard(results), effects, found)

    def test_refit_finds_a_constant(self):
        fits, changes, together = self.refit(*synthetic({"one": 0.2, "two": 0.2, "three": 0.2, "odd": 0.2}))
        self.assertEqual(together, {"C": -0.2})
        self.assertEqual(set(fits), {"odd", "one", "two", "three"})
        for family, values in fits.items():
            self.assertEqual(values, {"C": math.exp(-0.2)}, family)

    def test_refit_leaves_out_the_family_that_is_scored(self):
        results, slopes = synthetic({"one": -0.2, "two": -0.2, "three": -0.2, "odd": 0.2}, odd_slope=4, noise=0.1)
        _, changes, together = self.refit(results, slopes)
        kept = [i for i, r in enumerate(results) if r.job.family != "odd"]
        _, _, without = self.refit([results[i] for i in kept], [slopes[i] for i in kept])
        self.assertEqual(changes["odd"], without)
        self.assertEqual(without, {"C": 0.2})
        self.assertLess(together["C"], 0)  # the odd family pulls both of its constants
        self.assertIn("D", together)

    def test_factors_leave_out_the_family_that_is_scored(self):
        def factors(odd):
            results, _ = synthetic(dict.fromkeys(("one", "two", "three", "odd"), 0))
            for r in results:
                r.predicted_s *= {"one": 1.1, "two": 1.25, "three": 1.4, "odd": odd}[r.job.family]
            board = score.Board([r.job for r in results], FakeProgram(lambda request: 1.0))
            board.results = results
            return {family: factor(results[0]) for family, factor in board.factors().items()}

        near, far = factors(1.25), factors(5)
        self.assertAlmostEqual(near["odd"], 1.25 ** -0.75)  # three families: three quarters of it
        self.assertEqual(near["odd"], far["odd"])
        self.assertNotEqual(near["one"], far["one"])

    def test_memory_constants_leave_out_the_family_that_is_scored(self):
        gib = 2**30

        def held(odd):
            page, items = report.Page(), []
            for family, runtime, size in (("one", 1.5, 10), ("two", 1.5, 10), ("odd", odd, 1)):  # the odd rows are small: it counts there
                for n in range(1, 6):
                    job = read(id=f"{family}{n}", source=family, metric="peak_mem_gib", value=n * size + runtime)
                    parts = {"allocated_bytes": n * size * gib, "fragmentation_bytes": 0, "runtime_bytes": gib, "total_bytes": (n * size + 1) * gib}
                    items.append((score.Result(job, {"step_ns": 1, "memory": parts, "assumed": {"RUNTIME_BYTES": gib}}), 0, None))
            with redirect_stdout(io.StringIO()):
                return {r.job.row["id"]: error for r, error, _ in memory.held_out(page, items)}

        alike, odd = held(1.5), held(3)
        self.assertTrue(all(abs(error) < 1e-9 for error in alike.values()), alike)
        for n in range(1, 6):
            self.assertAlmostEqual(odd[f"odd{n}"], (n + 1.5) / (n + 3) - 1)
            self.assertAlmostEqual(odd[f"one{n}"], (10 * n + 3) / (10 * n + 1.5) - 1)  # fitted with it

    def test_hard_pairs(self):
        self.assertTrue(score.is_hard({"measured_step_ratio": "1.2", "dp_comm_over_anchor_step": "0.01"}))
        self.assertTrue(score.is_hard({"measured_step_ratio": "1.0", "dp_comm_over_anchor_step": "0.2"}))
        self.assertFalse(score.is_hard({"measured_step_ratio": "1.1", "dp_comm_over_anchor_step": ""}))


class FakeProgram:
    """Answers with the step that a row of synthetic truth has, times a factor of its anchor."""

    def __init__(self, truth):
        self.truth = truth
        self.asked = []

    def predict(self, requests):
        self.asked += requests
        out = []
        for request in requests:
            seconds = self.truth(request)
            if "measured-step" in request:
                factor = float(request["measured-step"][:-1]) / seconds
                out.append({"id": request["id"], "step_time_factor": factor, "step_ns": seconds * factor * 1e9})
            else:
                seconds *= request.get("time-factor", 1)
                out.append({"id": request["id"], "step_ns": seconds * 1e9, "step_low_ns": seconds * 0.9e9, "step_high_ns": seconds * 1.1e9, "memory": {"total_bytes": 40 * 2**30}})
        return out


class FakeBoard:
    def __init__(self, results):
        self.results = results


def synthetic(wrong, odd_slope=1, noise=0.0):
    """Rows of four families whose predictions are off by exp(wrong of the family × n / 5), a row of each by `noise` more; slopes differ within a family."""
    results, slopes = [], []
    for family in ("one", "two", "three", "odd"):
        for n in range(6):
            job = read(id=f"{family}{n}", source=family, micro_batch=n + 1)
            off = wrong[family] * n / 5 + noise * (n == 3)
            results.append(score.Result(job, {"step_ns": job.measured_s * 1e9 * math.exp(off)}))
            slopes.append(n / 5 * (odd_slope if family == "odd" else 1))
    return results, slopes


class Claims(unittest.TestCase):
    def board(self, seconds_of, table):
        return score.Board([rows.read(r, ACCEPTED) for r in table], FakeProgram(seconds_of))

    def test_a_constant_factor_is_taken_out_by_any_anchor(self):
        table = [row(id=str(n), micro_batch=n, value=n * 1.3) for n in (1, 2, 3, 4)]
        board = self.board(lambda request: request["micro-batch"] * 1.0, table)
        self.assertTrue(all(abs(error + 1 - 1 / 1.3) < 1e-9 for _, error, _ in board.specifications()))
        turn, rest = board.anchored({})
        self.assertEqual(len(turn), 4)
        for _, error, covered in turn + rest:
            self.assertAlmostEqual(error, 0)
            self.assertEqual(covered, 1)

    def test_one_odd_row_misses_as_target_and_does_not_spoil_the_others(self):
        table = [row(id=str(n), micro_batch=n, value=n * (2 if n == 5 else 1)) for n in (1, 2, 3, 4, 5)]
        turn, _ = self.board(lambda request: request["micro-batch"] * 1.0, table).anchored({})
        errors = {r.job.row["id"]: error for r, error, _ in turn}
        self.assertAlmostEqual(errors["5"], -0.5)
        self.assertAlmostEqual(errors["1"], 0)

    def test_duplicates_do_not_anchor_each_other(self):
        turn, _ = self.board(lambda request: 1.0, [row(id="a"), row(id="b", value=2.1)]).anchored({})
        self.assertEqual(turn, [])

    def test_pairs_are_found_by_cut_names_and_by_means_of_duplicates(self):
        table = [row(id="a", gpus=8, value=1.0), row(id="b", gpus=16, value=1.2), row(id="c", gpus=8, value=1.1), row(id="d", gpus=16, value=1.25)]
        board = self.board(lambda request: 1.0 if request["ranks"] == 8 else 1.1, table)
        pair = dict(source="somebody/some", model="Llama-2-7B", gpu="A100-SXM4", strategy="fs", precision="bf", gpus_anchor="8", gpus_target="16", dp_comm_over_anchor_step="0.1")
        found, missing = board.find_pairs([{**pair, "measured_step_ratio": "1.2"}, {**pair, "measured_step_ratio": str(2.45 / 2.1)}, {**pair, "measured_step_ratio": "3"},
                                           {**pair, "model": "other", "measured_step_ratio": "1.2"}])
        self.assertEqual([len(anchors) for _, anchors, _ in found], [1, 2])
        self.assertEqual(len(missing), 2)
        items = board.ratios(found, {})
        self.assertAlmostEqual(items[0][2], 1.1 / 1.2 - 1)
        self.assertEqual(items[0][3], 1)

    def test_strong_scaling_is_compared_by_work(self):
        table = [row(id="a", gpus=8, global_batch_seqs=64, grad_accum=8, value=8.0), row(id="b", gpus=16, global_batch_seqs=64, grad_accum=4, value=4.4)]
        board = self.board(lambda request: 1.0, table)
        self.assertAlmostEqual(score.measured_ratio(*board.results), 1.1)

    def test_constants_of_a_family_reach_its_requests(self):
        board = self.board(lambda request: 1.0, [row(id="a")])
        board.run_by_family({"somebody/something": {"JITTER": 0.25}})
        self.assertEqual(board.program.asked[-1]["assume"], ["JITTER=0.25"])

    def test_the_error_over_anchors_is_the_mean_of_the_middle_two(self):
        self.assertAlmostEqual(score.middle_error([0.1, 0.3]), 0.2)  # not the luckier one
        self.assertAlmostEqual(score.middle_error([-0.1, -0.3, 0.15]), -0.15)
        # row 1 is missed by -0.5 (anchor 4) or not at all (2, 3); rows 2 and 3 alike
        table = [row(id=str(n), micro_batch=n, value=n * factor) for n, factor in ((1, 1), (2, 1), (4, 2))]
        turn, _ = self.board(lambda request: request["micro-batch"] * 1.0, table).anchored({})
        self.assertEqual([round(error, 9) for _, error, _ in turn], [0.5, 0.5, -0.5])

    def test_pairs_of_one_configuration_weigh_once(self):
        table = [row(id="a", gpus=8, value=1.0), row(id="b", gpus=16, value=1.2), row(id="c", gpus=32, value=1.3)]
        board = self.board(lambda request: 1.0, table)
        a, b, c = board.results
        weights = score.pair_weights([({}, b, 0, 1, a), ({}, b, 0, 1, a), ({}, c, 0, 1, a)])
        self.assertEqual(weights, [0.5, 0.5, 1])

    def test_what_a_claim_loses_is_counted(self):
        class Forgets(FakeProgram):
            def predict(self, requests):
                return [answer if "time-factor" not in request else {"id": request["id"], "error": "no"} for request, answer in zip(requests, super().predict(requests))]

        table = [row(id=str(n), micro_batch=n, value=n) for n in (1, 2, 3)] + [row(id="alone", gpu="H100-80GB")]
        board = score.Board([rows.read(r, ACCEPTED) for r in table], Forgets(lambda request: 1.0))
        self.assertEqual(board.anchored({}), ([], []))
        self.assertEqual(board.unanswered["anchored step"], 9)  # two turns and one median each
        self.assertEqual([r.job.row["id"] for r in board.without_group()], ["alone"])

    def test_answers_that_are_errors_are_not_scored(self):
        class Refuses:
            def predict(self, requests):
                return [{"id": request["id"], "rc": 2, "error": "no"} for request in requests]

        board = score.Board([read()], Refuses())
        self.assertEqual((board.specifications(), board.results[0].error), ([], "no"))

    def test_peers_do_what_their_documentation_says(self):
        result = score.Result(read(strategy="zero2", framework="DeepSpeed"), {"step_ns": 1e9})
        parameters = result.job.shape.parameters()
        self.assertAlmostEqual(peers.deepspeed_bytes(result), 2 * parameters + 18 * parameters / 8)
        plain = score.Result(read(strategy="ddp"), {"step_ns": 1e9})
        self.assertAlmostEqual(peers.llm_analysis(plain, ACCEPTED), plain.job.shape.step_flops(4096, 1) / 312e12, delta=1e-6)


class Driver(unittest.TestCase):
    def program(self, script):
        file = tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False)
        with file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(file.name, 0o755)
        self.addCleanup(os.unlink, file.name)
        return run.Program(file.name)

    def test_a_list_that_cannot_be_had_is_no_empty_one(self):
        for script in ("exit 2\n", "echo nothing\n", "echo '{}'\n", "echo '{\"models\": []}'\n", "echo '[1]'\n"):
            with self.subTest(script=script), self.assertRaises(run.Broken):
                self.program(script).list("models")
        self.assertEqual(self.program("echo '{\"models\": [{\"name\": \"a\"}]}'\n").list("models"), [{"name": "a"}])


class Files(unittest.TestCase):
    def write(self, table):
        file = tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False, newline="")
        with file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(table)
        self.addCleanup(os.unlink, file.name)
        return file.name

    def test_a_file_of_something_else_is_refused_by_what_it_lacks(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("a,b\n1,2\n")
            file.flush()
            with self.assertRaisesRegex(SystemExit, "no column"):
                rows.load([file.name])

    def test_hostile_rows_are_counted_not_fatal(self):
        odd = ["", "NaN", "inf", "-1", "0", "1e400", "a" * 3000, "ä\u2028,\"", "99999999999999999999"]
        for value in odd:
            for name in COLUMNS:
                changed = row(**{name: value})
                try:
                    rows.read(changed, ACCEPTED)
                except shapes.Unknown:
                    continue

    def test_a_row_in_two_files_counts_once(self):
        path = self.write([row(id="a"), row(id="b", value=3)])
        other = self.write([row(id="sample", notes="sample of the other file")])
        self.assertEqual(len(report.unique(rows.load([path, other]))), 2)

    def test_pairs_with_broken_numbers_are_left_out(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("source,model,gpu,strategy,precision,gpus_anchor,gpus_target,measured_step_ratio,dp_comm_over_anchor_step\ns,m,g,f,b,8,16,1.1,\ns,m,g,f,b,8,16,x,0\ns,m\n")
            file.flush()
            self.assertEqual(len(report.read_pairs(file.name, None)), 1)


class Readme(unittest.TestCase):
    """Both READMEs quote the totals that the accuracy page states."""

    SHARES = r"(\d+\.\d %), p90 \S+ %, within 10 % (\d+ %)"
    CLAIMS = {"(a)": r"total ratio: median {0}.*?hard pairs: median {0}", "(b)": r"total anchored: .*?median {0}.*?median {0}", "(c)": r"total specifications: median {0}",
              "memory": r"total memory: policy stated: median {0}.*?not stated: median {0}", "显存": r"total memory: policy stated: median {0}.*?not stated: median {0}"}

    def test_figures_are_those_of_the_page(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(root, "docs", "accuracy.md"), encoding="utf-8") as file:
            page = file.read()
        for name in ("README.md", "README.zh-CN.md"):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                lines = [line for line in file if re.match(r"\| (\([abc]\)|memory, |显存，)", line)]
            self.assertEqual(len(lines), 4, name)
            for line in lines:
                claim = re.match(r"\| (\([abc]\)|memory|显存)", line).group(1)
                found = re.search(self.CLAIMS[claim].format(self.SHARES), page)
                wanted = {*found.groups()} | ({re.search(r"total specifications: .*?in interval (\d+ %)", page).group(1)} if claim == "(c)" else set())
                self.assertEqual({*re.findall(r"\d+\.\d %|\b\d\d %", re.sub("90 %|10 %", "", line))}, wanted, f"{name}: {claim}")


@unittest.skipUnless(os.environ.get("NODEWORTH"), "NODEWORTH does not name the program")
class Product(unittest.TestCase):
    """The program on a part of the published rows: bounds half as much again as what is reached (all and hard pairs; anchored once and by a
    single run), so that a defect shows and another constant does not."""

    def setUp(self):
        self.path = report.default_file("published_steps.csv")
        if not self.path:
            self.skipTest("no published rows here")

    def validate(self, *arguments):
        text = io.StringIO()
        with redirect_stdout(text):
            self.assertEqual(report.main(["--quick", "--program", os.environ["NODEWORTH"], *arguments]), 0)
        return text.getvalue()

    def test_totals_stay_within_bounds(self):
        words = [word for source in ("mosaicml", "dgxc", "Korthikanti", "torchtitan", "FlagPerf") for word in ("--only", source)]
        lines = self.validate("--rows", self.path, *words).strip().splitlines()[-4:]
        reached = {line.split(":")[0]: [float(number) for number in re.findall(r"median ([\d.]+) %", line)] for line in lines}
        every, _, _, no_slow_down = reached["total ratio"]
        self.assertLess(every, no_slow_down)
        bounds = {"total ratio": (1.6, 2.6), "total anchored": (4, 6.5), "total specifications": (6.5,), "total memory": (7.5,)}
        for name, limits in bounds.items():
            for number, limit in zip(reached[name], limits):
                self.assertLess(number, limit, name)

    def test_serving_stays_within_bounds(self):
        found, left_out = serving.speeds(os.environ["NODEWORTH"])
        self.assertGreaterEqual(len(found), 58)
        self.assertLessEqual(len(left_out), 5)
        self.assertLess(stats.median([abs(speed - 1) for _, _, speed, _ in found]), 0.15)
        self.assertGreater(sum(inside for *_, inside in found) / len(found), 0.9)

    def test_the_page_is_not_written_without_its_collectives(self):
        page = report.Page()
        with redirect_stdout(io.StringIO()):
            self.assertIn("no file", report.curve_table(page, None, run.Program(os.environ["NODEWORTH"])))
            self.assertIn("fabric_probe", report.curve_table(page, "any.csv", run.Program("/nowhere/nodeworth")))
        self.assertEqual(page.lines, [])

    def test_unknown_names_are_counted(self):
        path = Files.write(self, [row(id="a"), row(id="b", gpu="Somebody's GPU 9000"), row(id="c", framework="abacus"), row(id="d", precision="fp2")])
        text = self.validate("--rows", path)
        self.assertIn("4 rows: 2 predicted, 2 not predictable", text)

    def test_residuals_have_a_line_for_every_row(self):
        path = Files.write(self, [row(id="a"), row(id="b", gpu="")])
        with tempfile.NamedTemporaryFile("r", suffix=".tsv") as file:
            self.validate("--rows", path, "--residuals", file.name)
            table = list(csv.DictReader(file, delimiter="\t"))
        self.assertEqual([(line["id"], line["scored"]) for line in table], [("a", "yes"), ("b", "no")])
        self.assertGreater(float(table[0]["predicted"]), 0)


if __name__ == "__main__":
    unittest.main()
