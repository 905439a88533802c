"""One row of a CSV of published runs → one line for `nodeworth predict --batch`.

    job = rows.read(row, accepted)     # Job; shapes.Unknown says what a row lacks
    job.request                        # {"id": …, "seq": …, …}: long option names
    job.measured_s, job.memory_gib     # what was published, as seconds per optimizer step or GiB
    job.assumed, job.skip              # what the row left open; why it is not scored ("" where it is)

Rules: README.md. They are general: by words of the columns, never by source or row.
"""

import math
import re
from dataclasses import dataclass, field

from shapes import Unknown, consistent, find, number, plain, whole
from tables import Unreadable, read_table

COLUMNS = ("id source model gpu gpus framework strategy metric value").split()
OTHER_COLUMNS = ("url_or_repo_path params_b layers hidden heads kv_heads ffn vocab seq_len gpus_per_node intra_link inter_link_gbps_per_node tp pp dp_shard dp_replicate micro_batch "
                 "grad_accum global_batch_seqs recompute precision attention optimizer offload lora_rank notes").split()  # what a file need not have


@dataclass
class Job:
    row: dict
    request: dict = field(default_factory=dict)
    shape: object = None
    assumed: list = field(default_factory=list)
    skip: str = ""  # why not scored
    training: bool = False  # only there for constants to be fitted on
    metric: str = ""
    measured_s: float = 0  # of one optimizer step; 0: a memory row
    memory_gib: float = 0
    memory_kind: str = ""  # "all", "reserved", "allocated"
    policy_stated: bool = False
    gpu: str = ""
    profile: str = ""
    key: tuple = ()  # configuration: rows of one key are duplicates

    @property
    def source(self):
        return self.row["source"]

    @property
    def family(self):
        return family(self.source)


def load(paths):
    """Rows of the files, as dictionaries of texts with every column; SystemExit where a file has no such rows."""
    rows = []
    for path in paths:
        try:
            table, columns = read_table(path)
        except Unreadable as reason:
            raise SystemExit(f"ci/validate: {reason}") from None
        missing = [name for name in COLUMNS if name not in columns]
        if missing:
            raise SystemExit(f"ci/validate: {path}: no column {', '.join(missing)}; is it a file of published steps?")
        rows += [{**dict.fromkeys(OTHER_COLUMNS, ""), **row} for row in table]
    return rows


def family(source):
    """Sources that are held out together: one benchmark, repository or cluster."""
    if source.startswith("MLPerf"):
        return "MLPerf"
    text = re.sub(r"\(.*?\)|\bissue\b.*|\bREADME\b.*|\bv?\d+(\.\d+)+\b|\b20\d\d(-\d\d)?\b|\bdocs\b|\bblog\b", "", source)
    text = text.strip(" -_/").split(" ")[0] if "/" in text else text.strip(" -_")
    owner, _, name = text.partition("/")
    special = {"DeepSpeedExamples autotuning": "DeepSpeed", "DeepSpeed ZeRO++": "DeepSpeed", "DeepSpeed Azure": "DeepSpeed",
               "NVIDIA NeMo Automodel": "NVIDIA NeMo", "torchtitan/Trainy-WhiteFiber": "pytorch/torchtitan"}
    return special.get(text, text if not name else f"{owner}/{name}") or source


# ---- the machine ----------------------------------------------------------------------------------

# (pattern over the name in lower case, catalogue name); the first that matches
GPUS = [(re.compile(pattern), name) for pattern, name in (
    (r"gb300", "GB300 288GB"), (r"gb200", "GB200 186GB"), (r"b300", "B300 SXM 288GB"), (r"b200", "B200 SXM 180GB"),
    (r"gh200", "GH200 96GB"), (r"h200.*nvl", "H200 NVL 141GB"), (r"h200", "H200 SXM 141GB"),
    (r"h100.*hbm2e", "H100 SXM 96GB HBM2e"), (r"h100.*pcie", "H100 PCIe 80GB"), (r"h100.*nvl(?!ink)", "H100 NVL 94GB"), (r"h100|h100.*96", "H100 SXM5 80GB"),
    (r"h800.*pcie", "H800 PCIe 80GB"), (r"a800/h800", ""), (r"h800", "H800 SXM5 80GB"), (r"h20-3e", "H20-3e SXM 141GB"), (r"\bh20\b", "H20 SXM 96GB"),
    (r"^a800.*pcie", "A800 PCIe 80GB"), (r"^a800", "A800 SXM4 80GB"),
    (r"a100.*pcie.*40|a100.*40.*pcie", "A100 PCIe 40GB"), (r"a100.*pcie", "A100 PCIe 80GB"), (r"a100.*40", "A100 SXM4 40GB"), (r"a100", "A100 SXM4 80GB"),
    (r"a800", "A800 SXM4 80GB"),
    (r"a6000", "RTX A6000 48GB"), (r"a40\b", "A40 48GB"), (r"a30\b", "A30 24GB"), (r"a10g", "A10G 24GB"), (r"a10\b", "A10 24GB"),
    (r"l40s", "L40S 48GB"), (r"l40\b", "L40 48GB"), (r"l20\b", "L20 48GB"), (r"l4\b", "L4 24GB"),
    (r"4090 ?d", "RTX 4090 D 24GB"), (r"4090", "RTX 4090 24GB"), (r"3090 ?ti", "RTX 3090 Ti 24GB"), (r"3090", "RTX 3090 24GB"), (r"5090", "RTX 5090 32GB"),
    (r"rtx pro 6000", "RTX PRO 6000 Blackwell 96GB"), (r"6000 ada", "RTX 6000 Ada 48GB"),
    (r"v100s", "V100S PCIe 32GB"), (r"v100.*pcie.*16|v100.*16.*pcie", "V100 PCIe 16GB"), (r"v100.*pcie", "V100 PCIe 32GB"), (r"v100.*16", "V100 SXM2 16GB"), (r"v100", "V100 SXM2 32GB"),
    (r"\bt4\b", "T4 16GB"), (r"mi300x", "MI300X 192GB"), (r"mi325x", "MI325X 256GB"), (r"910b2", "Ascend 910B2 64GB"), (r"910b", "Ascend 910B3 64GB"),
    (r"class gpu", ""),
)]
NVL72 = re.compile(r"gb[23]00", re.I)
SXM = re.compile(r"sxm|gb[23]00|oam|gh200", re.I)


def find_gpu(text):
    lower = text.lower()
    for pattern, name in GPUS:
        if pattern.search(lower):
            if not name:
                break
            return name
    else:
        if text:
            return text  # the product says whether its catalogue has it
    raise Unknown(f"GPU not stated exactly: \"{text}\"" if text else "GPU not stated")


def nics(row, gpu, gpus_per_node, job):
    """Gb/s of a node's NICs and their count."""
    stated = number(row, "inter_link_gbps_per_node")
    if stated is None:
        # "2 x 200Gbe Ethernet", "4x200 Gb/s RDMA per node"
        match = re.search(r"(\d+) ?x ?(\d+) ?(?:gbe|gb/s rdma|g rdma|gb/s ib|gbps)", (row["intra_link"] + " ; " + row["notes"]).lower())
        if match and 1 <= int(match.group(1)) <= 32 and 10 <= int(match.group(2)) <= 800:
            return int(match.group(1)) * int(match.group(2)), int(match.group(1))
        job.assumed.append("NICs")
        if re.search(r"H100 SXM|H200 SXM|H800 SXM|H20|B[23]00 SXM|MI3", gpu):
            return 3200, 8
        if NVL72.search(gpu):
            return 400 * gpus_per_node, gpus_per_node
        if re.search(r"[AH]?[18]00 SXM4|A100 SXM|A800 SXM", gpu):
            return 1600, 8
        if "V100 SXM" in gpu:
            return (800, 8) if gpus_per_node == 16 else (400, 4)
        if "Ascend" in gpu:
            return 1600, 8
        return 100, 1
    count = 8 if stated >= 1600 else 4 if stated >= 400 else 1
    if NVL72.search(gpu):
        stated, count = stated * gpus_per_node / 4, gpus_per_node
    return stated, count


def machine(row, job):
    gpu = job.gpu = find_gpu(row["gpu"])
    gpus = whole(row, "gpus")
    if not gpus:
        raise Unknown("GPU count not stated")
    per_node = whole(row, "gpus_per_node")
    if not per_node:
        per_node = min(gpus, 8)
        if gpus > 1:
            job.assumed.append("GPUs per node")
    if NVL72.search(gpu):  # one NVLink domain of 72: the node of the model is the domain
        per_node = next((n for n in (72, 64, 48, 36, 32, 16, 8, 4) if n <= gpus and gpus % n == 0), per_node)
    per_node = min(per_node, gpus)
    nodes = -(-gpus // per_node)
    request = job.request
    request.update({"gpu": gpu, "ranks": gpus, "nodes": str(nodes), "gpus-per-node": per_node})
    if "hbm2e" in row["gpu"].lower() and gpu.startswith("H100"):
        request["hbm"] = 2400  # five stacks of HBM2e instead of HBM3
    memory = re.search(r"(\d+) ?gb", row["gpu"].lower())
    if memory and int(memory.group(1)) not in (0,) and memory.group(1) not in gpu:
        request["gpu-memory"] = f"{memory.group(1)}GiB"
    link = row["intra_link"].lower()
    if per_node > 1:
        if "pcie" in link and not re.search(r"(?<!no )nvlink", link) or "no_nv" in link:
            request["link"] = "pcie"
        elif "nvl" in link or "nvswitch" in link or SXM.search(gpu):
            request["link"] = "nvlink"
    if nodes > 1:
        rate, count = nics(row, gpu, per_node, job)
        request["nic-gbps"] = rate
        request["nic-count"] = min(count, 64)
    return gpus


# ---- the software ---------------------------------------------------------------------------------

# words of framework, strategy and notes → profiles, the first that the program has. Compiled code is told apart by a second table.
FRAMEWORKS = [(re.compile(pattern), names) for pattern, names in (
    (r"fsdp2? ?\+ ?te\b|automodel", ("pytorch",)),
    (r"megatron-llama.*no overlap", ("megatron-lm", "megatron-legacy", "megatron")),
    (r"megatron-llama|overlappeddistributedoptimizer", ("megatron",)),
    (r"megatron[- ]?deepspeed|megatron.*\+ ?deepspeed|deepspeed.*megatron", ("megatron-deepspeed", "deepspeed")),
    (r"nemo|megatron-bridge", ("nemo", "megatron")),  # Megatron-Bridge is the library under NeMo 25.11, with its recipes
    (r"megatron-?core|mcore|flagscale|transformer ?engine|\bte\b.*megatron|megatron.*\bte\b", ("megatron",)),
    (r"primus|mindspeed", ("megatron",)),
    (r"megatron", ("megatron-lm", "megatron-legacy", "megatron")),
    (r"composer|llm-foundry|mosaic", ("composer", "pytorch")),
    (r"torchtitan", ("torchtitan", "pytorch")),
    (r"lit-?gpt|lightning", ("litgpt", "pytorch")),
    (r"axolotl|unsloth|llama-?factory|liger|\bhf\b|hugging|trainer|\btrl\b|peft|accelerate|transformers|swift|xtuner", ("hf", "pytorch")),
    (r"colossal", ("colossalai", "deepspeed")),
    (r"deepspeed|zero-?\d|bmtrain", ("deepspeed",)),
    (r"neox", ("megatron-deepspeed", "deepspeed")),
    (r"jax|paxml|maxtext|flax|t5x|levanter|gspmd|\balpa\b|easylm|\bxla\b", ("jax", "megatron")),
    (r"tensorflow|\btf ?[12]", ("mxnet", "apex")),
    (r"paddle", ("paddle", "megatron-lm")),
    (r"llm\.c|llm\.q|c\+\+/cuda|\bcuda \d|tinygrad", ("llm.c", "llmc", "megatron")),
    (r"internevo|internlm", ("internevo", "pytorch")),
    (r"oneflow|libai", ("oneflow", "apex", "pytorch")),
    (r"^mxnet|horovod", ("mxnet", "apex")),
    (r"flashattention training|flash-attention", ("pytorch-compile", "pytorch")),
    (r"\bdle\b|deeplearningexamples|deep learning examples|apex|nvidia release|nvidia pytorch|\bngc\b|mxnet|mindspore|distributed lamb", ("apex", "pytorch")),
    (r"torch|ddp|fsdp|fairs(eq|cale)|open_?clip", ("pytorch",)),
)]
COMPILED = re.compile(r"torch\.?compile|thunder|inductor|nvfuser")


def find_profile(row, accepted, job):
    words = row["framework"].lower()
    if "distributed lamb" in row["strategy"].lower():  # of the many names of a submission none is the one
        words = "nvidia pytorch"
    if not words:
        job.assumed.append("framework")
        return accepted.pick("frameworks", ("pytorch",))
    for pattern, names in FRAMEWORKS:
        if pattern.search(words):
            # NeMo's recipes are Megatron-Core with its tensor-parallel messages overlapped
            if names == ("megatron",) and "tp-comm-overlap on" in row["notes"].lower():
                names = ("nemo", "megatron")
            # DeepSpeed under the Trainer: DeepSpeed moves the data
            if names[0] == "hf" and ("deepspeed" in words or "zero" in row["strategy"].lower()):
                names = ("hf-deepspeed", "deepspeed")
            if COMPILED.search(words + " " + row["notes"].lower()) and "eager" not in words:
                compiled = tuple(f"{name}-compile" for name in names)
                if accepted.pick("frameworks", compiled):
                    return accepted.pick("frameworks", compiled)
                if names[-1] == "pytorch" and accepted.pick("frameworks", ("pytorch-compile",)) and names[0] != "torchtitan":
                    names = ("pytorch-compile",) + names
            chosen = accepted.pick("frameworks", names)
            if chosen:
                return chosen
    job.assumed.append("framework")  # most that have a name of their own are PyTorch
    return accepted.pick("frameworks", ("pytorch",))


PRECISIONS = [(re.compile(pattern), name) for pattern, name in (
    (r"fp4", None), (r"int8|int4", None), (r"fp8|float8|e4m3", "fp8"), (r"fp32 \(tf32|tf32", "tf32"), (r"bf16|bfloat16", "bf16"), (r"fp16|float16|half|\bamp\b|mixed|\bo[12]\b", "fp16"), (r"fp32|float32", "fp32"))]


STORED = re.compile(r"\([^()]*\bbase\b[^()]*\)")


def precision(row, job):
    text = row["precision"].lower()
    request = job.request
    if not text:
        name = "fp16" if "V100" in job.gpu or "T4" in job.gpu else "bf16"
        job.assumed.append("precision")
    else:
        computed = STORED.sub("", text)  # "bf16 (nf4 base)", "fp16 (int4 GPTQ base)": what the frozen weights are stored in
        for pattern, name in PRECISIONS:
            if pattern.search(computed):
                break
        else:
            name = None
    if name == "fp32" and not re.search(r"V100|T4|Ascend", job.gpu):
        name = "tf32"  # of NVIDIA's containers, of PyTorch's convolutions, and of its products up to 1.11
        job.assumed.append("tf32 for fp32")
    if name is None:
        raise Unknown(f"precision that the model does not have: {row['precision']}")
    request["precision"] = name
    stored = STORED.search(text)
    if re.search(r"nf4|4-?bit", text) or stored and re.search(r"int4|gptq|awq", stored.group(0)):
        request["base"] = "nf4"  # another 4-bit type takes as many bytes
    elif stored and re.search(r"int8|8-?bit", stored.group(0)):
        request["base"] = "int8"
    elif "qlora" in plain(row["model"]):
        request["base"] = "nf4"
    notes = row["notes"].lower()
    if re.search(r"bf16-true|pure bf16|bf16 params/reduce.*adamw8|full bf16", text + " " + notes):
        request["master"] = "none"
        request["gradients"] = "same"
    if "fp32 reduce" in notes:
        request["reduce"] = "fp32"
    elif "bf16 params/reduce" in notes:
        request["reduce"] = "bf16"
    if "fp32 grad accumulation" in notes:
        request["gradients"] = "fp32"


OPTIMIZERS = [(re.compile(pattern), name) for pattern, name in (
    (r"8-?bit", "adam8bit"), (r"adafactor", "adafactor"), (r"lamb", "lamb"), (r"lars|sgd", "sgd"), (r"adamw", "adamw"), (r"adam", "adam"))]


def optimizer(row, job, accepted):
    text = row["optimizer"].lower()
    if not text:
        job.assumed.append("optimizer")
        return
    for pattern, name in OPTIMIZERS:
        if pattern.search(text):
            fallback = {"lamb": "adam", "adafactor": "sgd"}.get(name, name)
            job.request["optimizer"] = accepted.pick("optimizers", (name, fallback)) or name
            return
    raise Unknown(f"optimizer that the model does not have: {row['optimizer']}")


def recompute(row, job):
    text = row["recompute"].lower()
    if not text:
        job.assumed.append("recomputation")
        text = "none"
    if "selective" in text:
        inside = set(re.findall(r"[a-z]+", text.partition("(")[2]))
        name = "full" if inside & {"ffn", "mlp"} else "selective"
    else:
        name = {"none": "none", "no": "none", "full": "full", "true": "full", "yes": "full", "all": "full", "false": "none", "off": "none", "attn": "selective", "attention": "selective"}.get(text.split(" ")[0])
    if name is None:
        raise Unknown(f"recomputation that the model does not have: {row['recompute']}")
    job.request["recompute"] = name


def attention(row, job):
    text = row["attention"].lower()
    if not text:
        job.assumed.append("attention")
        modern = re.search(r"megatron-?core|mcore|bridge|nemo|torchtitan|composer|litgpt|fsdp2|flash|liger|maxtext|paxml|llama-?factory|\bte\b", row["framework"].lower() + row["notes"].lower())
        text = "flash" if modern or re.search(r"^(H|B|GB|GH|L4|L2|RTX [45P]|RTX 6)", job.gpu) else "none"
    job.request["attention"] = "flash" if re.search(r"flash|sdpa|cudnn|xformers|memory", text) else "materialized"


def offload(row, job):
    text = row["offload"].lower()
    notes = row["notes"].lower()
    full = "full cpu offload" in notes or "full offload" in notes
    if text in ("", "none", "no") and not full:
        return
    to = "nvme" if "nvme" in text else "cpu"
    whole_state = text in ("cpu", "cpu (full)", "nvme", "full") or full
    if whole_state or re.search(r"opt|master|activation checkpoints in cpu", text) and "activation" not in text:
        job.request["offload-optimizer"] = to
    if whole_state or re.search(r"\bparams?|weights|quants", text):
        job.request["offload-params"] = to


def lora(row, job):
    words = plain(row["model"] + " " + row["strategy"])
    rank = whole(row, "lora_rank")
    if "lora" not in words and not rank:
        return
    notes = row["notes"].lower()
    stated = re.search(r"\br ?= ?(\d+)", notes)
    if not rank and stated:
        rank = int(stated.group(1))
    if not rank:
        rank = 16
        job.assumed.append("LoRA rank")
    job.request["lora-rank"] = rank
    targets = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
    named = [short for short, long in targets.items() if long in notes]
    if "all-linear" in notes or "all linear" in notes:
        named = list(targets)
    elif not named and re.search(r"lit-?gpt|\bpeft\b", row["framework"].lower()):
        named = ["q", "v"]  # the defaults of LitGPT and PEFT
    if not named:
        job.assumed.append("LoRA targets")
        named = ["q", "k", "v", "o"]
    job.request["lora-targets"] = ",".join(named)


# ---- how it is spread -----------------------------------------------------------------------------

def degree(row, job, name):
    value = whole(row, name)
    if value:
        return value
    match = re.search(rf"\b{name}[ =]?(\d+)", row["strategy"].lower()) or re.search(rf"\b{name}[ =]?(\d+)\b", row["notes"].lower())
    return int(match.group(1)) if match else None


def from_notes(row, *words):
    for word in words:
        match = re.search(rf"\b{word}[ =]*(\d+)\b", row["notes"].lower()) or re.search(rf"\b{word}[ =]?(\d+)\b", row["strategy"].lower())
        if match:
            return int(match.group(1))
    return None


def model_parallel(size, job):
    memory = re.search(r"(\d+)GB", job.gpu)
    room = 0.8 * int(memory.group(1)) * 1e9 if memory else 64e9
    tp = 1
    while tp < size and size % (2 * tp) == 0 and 2 * job.shape.parameters() / tp > room:
        tp *= 2
    return tp, size // tp


def shard_group(job, dp):
    """Of FSDP within data parallelism: the fewest ranks, a node at least, whose states take half of the memory."""
    memory = re.search(r"(\d+)GB", job.gpu)
    room = 0.5 * int(memory.group(1)) * 1e9 if memory else 40e9
    ranks = min(job.request["gpus-per-node"], dp)
    while ranks < dp and dp % (2 * ranks) == 0 and 16 * job.shape.parameters() / ranks > room:
        ranks *= 2
    return ranks


def spread(row, job, gpus, accepted):
    """Strategy and degrees into the request; returns the data-parallel ranks."""
    text = row["strategy"].lower()
    request = job.request
    tp, pp = degree(row, job, "tp"), degree(row, job, "pp")
    cp = from_notes(row, "cp", "context parallel") or 1
    ep = from_notes(row, "ep", "expert parallel") or 1
    shard, replicate = whole(row, "dp_shard"), whole(row, "dp_replicate")
    match = re.search(r"\bdp[ =]?(\d+)", text)
    dp_stated = int(match.group(1)) if match else (shard or 1) * (replicate or 1) if shard or replicate else None
    if not pp:
        pp = 1
        if re.search(r"\bpp\b", text):
            if not (tp and dp_stated):
                raise Unknown("pipeline stages not stated")
            pp = max(1, gpus // (tp * cp * dp_stated))
    size = re.search(r"\(tpxcp\) size (\d+)", row["notes"].lower())
    if not tp and size:
        # tensor-parallel ranks as few as hold the weights, the rest split the sequence
        tp, cp = model_parallel(int(size.group(1)), job)
        job.assumed.append("TP of TP x CP")
    if not tp:
        tp = 1
        if re.search(r"\btp\b", text):
            if not dp_stated or not whole(row, "pp") and re.search(r"\bpp\b", text):
                raise Unknown("tensor-parallel ranks not stated")
            tp = max(1, gpus // (pp * cp * dp_stated))
            job.assumed.append("TP of the data-parallel ranks")
    if re.search(r"\bcp\b", text) and cp == 1 and dp_stated and gpus % (tp * pp * dp_stated) == 0:
        cp = gpus // (tp * pp * dp_stated)
    if gpus % (tp * pp * cp):
        raise Unknown(f"TP × PP × CP = {tp * pp * cp} does not divide {gpus} GPUs")
    dp = gpus // (tp * pp * cp)
    known = [(r"zero\+\+|hpz|qwz|qgz", ("zeropp", "zero++", "zero3++")), (r"hsdp|hybrid.?shard", ("hsdp", "fsdp")),
             (r"shard_grad_op|zero-?2|(zero|stage)[- ]?(stage)?[- ]?2", ("zero2",)), (r"no_shard", ("ddp",)), (r"fsdp|full(y)?[-_ ]shard", ("fsdp",)),
             (r"(zero|stage)[- ]?(stage)?[- ]?3|zero[-_ ]?infinity|gemini", ("zero3",)),
             (r"(zero|stage)[- ]?(stage)?[- ]?1|distributed optimizer|sharded optimizer|distributed lamb|sharded weights", ("zero1",)),
             (r"ddp|\bdp|(zero|stage)[- ]?(stage)?[- ]?0|data parallel", ("ddp",)), (r"none|\btp|\bpp|\bsp\b|\bcp|^$|horovod|single|lora|\bep\b|tensor|pipeline|\b3d\b", ("ddp",))]
    for pattern, names in known:
        if re.search(pattern, text):
            strategy = accepted.pick("strategies", names)
            break
    else:
        raise Unknown(f"strategy that the model does not have: \"{row['strategy'][:50]}\"")
    if strategy is None:
        raise Unknown(f"strategy that the model does not have: {names[0]}")
    if strategy == "ddp" and re.search(r"distributed|sharded", row["optimizer"].lower()):
        strategy = "zero1"
    # recipes of this age cut the optimizer over the data-parallel ranks
    if strategy == "ddp" and dp > 1 and (job.profile in ("megatron", "nemo") or "zero stage not stated" in text):
        strategy = "zero1"
        job.assumed.append("optimizer cut")
    if strategy == "zero1" and job.profile in ("megatron", "nemo", "megatron-lm"):
        strategy = accepted.pick("strategies", ("distopt", "zero1"))
    if strategy == "zero2" and re.search(r"fsdp|composer|torchtitan", row["framework"].lower()):
        strategy = accepted.pick("strategies", ("fsdp-keep", "zero2"))  # SHARD_GRAD_OP
    if strategy == "ddp" and gpus == 1:
        strategy = accepted.pick("strategies", ("none", "ddp"))
    if text == "" and gpus > 1:
        job.assumed.append("strategy")
    request["strategy"] = strategy
    if dp * cp % ep:  # Megatron-Core deals whole experts over tensor-parallel ranks too; here these cut each expert
        ep = math.gcd(ep, dp * cp)
        job.assumed.append("experts over fewer ranks")
    for name, value in (("tp", tp), ("pp", pp), ("cp", cp), ("ep", ep)):
        if value > 1:
            request[name] = value
    if shard and strategy in ("fsdp", "hsdp", "zero3", "zeropp") and replicate and 1 < shard < dp * cp and (replicate > 1 or "hsdp" in text):
        request["shard"] = shard
    elif strategy == "fsdp" and not shard and re.search(r"fsdp ?\+ ?dp\b", row["notes"].lower()) and dp > 1:
        request["shard"] = shard_group(job, dp)
        job.assumed.append("shard group of FSDP + DP")
    virtual = from_notes(row, "vp", "pipeline interleaving", "virtual stages?")
    if virtual and pp > 1:
        whole_chunks = [v for v in range(min(virtual, 1024), 0, -1) if v == 1 or 0 in (job.shape.layers % (pp * v), (job.shape.layers + 2) % (pp * v))]
        if whole_chunks[0] != virtual:  # layouts by hand: the next that deals layers (or those with embeddings and loss) evenly
            virtual = whole_chunks[0]
            job.assumed.append("virtual stages that layers fill")
        if virtual > 1:
            request["virtual-stages"] = virtual
    if tp == 1:
        pass  # there is nothing to cut
    elif re.search(r"\+sp\b|sequence parallel", text + " " + row["notes"].lower()):
        request["sequence-parallel"] = "no" if "no sp" in row["notes"].lower() else "yes"
    elif "no sp" in row["notes"].lower():
        request["sequence-parallel"] = "no"
    elif job.profile in ("megatron", "nemo") or job.profile.startswith("torchtitan"):
        request["sequence-parallel"] = "yes"  # their recipes' default
        job.assumed.append("sequence parallel")
    return dp


def batch(row, job, dp, sequence):
    """micro-batch and global batch, in sequences."""
    micro, steps, total = whole(row, "micro_batch"), whole(row, "grad_accum"), whole(row, "global_batch_seqs")
    pp = job.request.get("pp", 1)
    notes = row["notes"].lower()
    packed = re.search(r"(\d+) packed rows/gpu", notes)
    if packed:
        micro, steps, total = int(packed.group(1)), 1, int(packed.group(1)) * dp
    elif re.search(r"packed variable-length samples", notes) and total:
        # the same benchmark states two samples a row on one node
        job.assumed.append("two samples a packed row")
        total = max(dp, total // (2 * dp) * dp)
    local = re.search(r"local batch (\d+)", notes)
    if local and not total:
        total = int(local.group(1)) * dp
    tokens = re.search(r"(\d+) tokens per gpu per step", notes)
    if tokens and not total and sequence:
        total = max(1, int(tokens.group(1)) // sequence) * dp
    if not total:
        if not micro:
            raise Unknown("batch not stated")
        if not steps:
            steps = 4 * pp if pp > 1 else 1  # a full pipeline
            job.assumed.append("accumulation")
        total = micro * steps * dp
    if not micro:
        job.assumed.append("micro-batch")
        each = total / dp
        if steps and each / steps >= 1 and (each / steps) % 1 == 0:
            micro = int(each // steps)
        elif pp > 1 and job.profile.startswith("torchtitan") and each % pp == 0:
            micro = int(each) // pp  # pipeline_parallel_microbatches: as many as stages
        elif pp > 1:
            micro = 1
        else:
            most = max(1, 16384 // sequence) if sequence else int(each)
            micro = next((n for n in range(min(most, max(1, int(each))), 0, -1) if each % n == 0), 1)
    if total % (dp * micro):
        if steps and abs(micro * steps * dp / total - 1) <= 0.15:
            total = micro * steps * dp
        elif total % dp == 0 and total // dp < micro:
            micro = total // dp
        elif total >= dp * micro:
            total = round(total / (dp * micro)) * dp * micro
            job.assumed.append("batch that can be dealt")
        else:
            raise Unknown(f"global batch {total} cannot be dealt to {dp} × {micro}")
    return micro, total


# ---- what was measured ----------------------------------------------------------------------------

SKIP = [(re.compile(pattern), why) for pattern, why in (
    (r"user report|author note absent|may or may not", "a user's report or an unclear figure"),
    (r"run-to-run \+/-|noisy", "author states a large spread"),
    (r"read from figure|digiti[sz]ed|bar chart|labelled value in figure|read off|eyeball", "read off a drawing"),
    (r"inconsistent|ambiguous|ambiguity|swapped|approximate|start-up|not captured|~ ?\d+ ?ms|\"about|unclear", "table contradicts itself or is approximate"),
    (r"incl\. data loading|input-bound|data loading bound|excludes data loading", "bound by the loader, or it was left out"),
    (r"length binning|variable-length|padding per batch|padded|dynamic padding", "fewer tokens than stated"),
    (r"exceeds|above peak|faster than the peak", "beyond the GPU's peak"),
)]
SKIP_MEMORY = re.compile(r"analytic|estimate", re.I)


def why_not_scored(row, job):
    source, notes = row["source"].lower(), row["notes"].lower()
    if re.search(r"\bissue\b|github\.io|forum|reddit", source):
        return "a user's report or an unclear figure"
    memory = job.metric == "peak_mem_gib"
    for pattern, why in SKIP:
        if memory and why in ("bound by the loader, or it was left out",):
            continue
        if memory and "padding per batch" in notes and why == "fewer tokens than stated":
            continue  # the longest sample sets the peak, and it is the one stated
        if pattern.search(notes):
            return why
    log = re.search(r"log tps (\d+).*implied (\d+)", notes)
    if log and not 0.95 < int(log.group(1)) / max(1, int(log.group(2))) < 1.05:
        return "table contradicts itself or is approximate"
    if memory and SKIP_MEMORY.search(row["notes"]):
        return "computed, not measured"
    if job.shape.encoder and re.search(r"squad|glue|fine-?tun", row["model"].lower() + notes) and not memory:
        return "fewer tokens than stated"
    if "vtrain" in source and (job.shape.hidden or 0) < 2048:
        return "narrow shapes of an operator sweep"
    return ""


def measured(row, job, sequence, total, gpus, peak_flops):
    value = number(row, "value")
    job.metric = row["metric"].lower()
    if value is None or value <= 0:
        raise Unknown("no measured value")
    hardware = re.search(r"include recompute|hardware flop", row["notes"].lower()) is not None
    if job.metric == "step_s":
        job.measured_s = value
    elif job.metric == "tokens_per_s_per_gpu":
        if not sequence:
            raise Unknown("sequence length not stated")
        job.measured_s = total * sequence / (value * gpus)
    elif job.metric in ("tflops_per_gpu", "mfu"):
        if job.metric == "mfu":
            if not peak_flops:
                raise Unknown("MFU of an unknown peak")
            value = value / 100 * peak_flops / 1e12
        job.measured_s = job.shape.step_flops(sequence, total, hardware) / (value * 1e12 * gpus)
    elif job.metric == "peak_mem_gib":
        job.memory_gib = value
        notes, framework = row["notes"].lower(), row["framework"].lower()
        if re.search(r"max_memory_allocated|memory_allocated|\ballocated\b", notes) or re.search(r"lit-?gpt|lightning fabric", framework):
            job.memory_kind = "allocated"
        elif re.search(r"reserved", notes) or "torchtitan" in framework or "torchtune" in framework:
            job.memory_kind = "reserved"
        else:
            job.memory_kind = "all"
    else:
        raise Unknown(f"metric that is no step and no memory: {row['metric']}")


def policy(row, job):
    """Whether the row says what its framework keeps in memory."""
    return all(row[name] for name in ("recompute", "attention", "optimizer", "precision", "micro_batch", "strategy", "framework")) \
        and not set(job.assumed) & {"accumulation", "LoRA rank", "LoRA targets", "optimizer", "micro-batch", "optimizer cut", "TP of TP x CP"}


CHUNKED = re.compile(r"chunked (cross|loss)|(linear|cut) cross.?entropy|fused linear|\bliger\b")


def loss(row, job):
    if CHUNKED.search((row["framework"] + " " + row["notes"]).lower()):
        job.request["loss"] = "chunked"


def model_options(job):
    shape, request = job.shape, job.request
    if not shape.transformer:
        preset = {25.557e6: "resnet-50", 86.6e6: "vit-b-16", 304.3e6: "vit-l-16"}.get(shape.parameter_count)
        if preset:  # with the bytes that its layers move
            request["model"] = preset
            return
        request.update({"parameters": shape.parameter_count, "flops-per-sample": shape.flops_per_sample / 3})  # the forward pass
        if shape.activations:
            request["activations-per-sample"] = shape.activations
        return
    if shape.preset:
        request["model"] = shape.preset
        if whole(job.row, "layers"):
            request["layers"] = shape.layers
        return
    request.update({"layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads, "kv-heads": shape.kv_heads,
                    "head-size": shape.head_size, "ffn": shape.ffn, "vocab": shape.vocab,
                    "gated": "yes" if shape.gated else "no", "tied": "yes" if shape.tied else "no"})
    if shape.encoder:
        request["encoder"] = "yes"
    if shape.experts:
        request.update({"experts": shape.experts, "experts-per-token": shape.experts_per_token})
        if shape.expert_ffn:
            request["expert-ffn"] = shape.expert_ffn


def read(row, accepted):
    """The Job of a row; Unknown says why there is none."""
    job = Job(row=row)
    if not row["metric"]:
        raise Unknown("metric not stated")
    job.shape, job.assumed = find(row, accepted.names.get("models"))
    gpus = machine(row, job)
    job.profile = find_profile(row, accepted, job)
    request = job.request
    request["framework"] = job.profile
    model_options(job)
    sequence = whole(row, "seq_len")
    if not sequence and job.shape.transformer:
        raise Unknown("sequence length not stated")
    if sequence:
        request["seq"] = sequence
    precision(row, job)
    optimizer(row, job, accepted)
    recompute(row, job)
    attention(row, job)
    offload(row, job)
    loss(row, job)
    lora(row, job)
    dp = spread(row, job, gpus, accepted)
    micro, total = batch(row, job, dp, sequence)
    request["micro-batch"], request["global-batch"] = micro, total
    measured(row, job, sequence or 1, total, gpus, accepted.peak(job.gpu, request["precision"]))
    if not consistent(job.shape, row):
        job.assumed.append("shape other than the stated parameters")
    job.skip = why_not_scored(row, job)
    job.policy_stated = policy(row, job)
    request["id"] = row["id"]
    job.key = (job.family, job.metric.startswith("peak")) + tuple(str(request[name]) for name in sorted(request) if name != "id") \
        + (plain(row["framework"]),)
    return job
